# exit: 0
# As in the caches of model hubs: links to files below a folder that the user names are followed, links out of it are
# not.
. "$HERE/wire"
. "$HERE/external"
mkdir -p hub/models hub/blobs
printf '\0\0\200\77\0\0\0\100' >hub/blobs/w
printf '\0\0\200\77\0\0\0\100' >outside
ln -s ../blobs/w hub/models/w.bin
external w.bin >hub/models/model.onnx
"$SBPCC" --print --data-root=hub hub/models/model.onnx >/dev/null || exit 1
ln -sf ../../outside hub/models/w.bin
"$SBPCC" --print --data-root=hub hub/models/model.onnx >/dev/null 2>err
[ $? = 1 ] && grep -q 'leads out of' err
