# Every node is listed: 30 operators, and 150 nodes of one of them, exceed the limits on errors and notes of other
# messages.
{
	echo 'g (float[2] x) => (float[2] y) {'
	for ((i = 0; i < 30; i++)); do echo "a$i = Unheard$i(x)"; done
	for ((i = 0; i < 150; i++)); do echo "b$i = com.vendor.Same(x)"; done
	echo 'y = Relu(x) }'
} >model.ir
"$SBPCC" model.ir -o out 2>err
status=$?
[ "$(grep -c ': error: operator Unheard.* is not supported (1 node)' err)" = 30 ] || { cat err >&2; exit 9; }
[ "$(grep -c ': note: also here, making b[0-9]*$' err)" = 149 ] || { cat err >&2; exit 9; }
grep -v '^ ' err | sed -n '/Same/,+1p;$p' >&2
exit $status
