# exit: 0
# The tree builds in a folder whose name holds shell syntax, and the compiler runs nothing from the environment.
cp "$ROOT/examples/mlp.ir" .
out='tree $(touch hit) `touch hit` ; touch hit #'
mkdir bin
printf '#!/bin/sh\ntouch "%s/hit"\n' "$PWD" >bin/sh
chmod +x bin/sh
cp bin/sh bin/cc
PATH=$PWD/bin:$PATH CC='touch hit' MAKEFLAGS='-n' "$SBPCC" mlp.ir -o "$out" || exit 9
make -s -C "$out" </dev/null || exit 9
[ ! -e hit ] && [ ! -e "$out/hit" ]
