# 40,000 names that no operator has take no longer than one.
{
	echo 'g (float[2] x) => (float[2] y) {'
	awk 'BEGIN { for (i = 0; i < 40000; i++) print "a" i " = Unheard" i "(x)" }'
	echo 'y = Relu(x) }'
} >model.ir
"$SBPCC" model.ir -o out 2>err
status=$?
[ "$(grep -c ': error: ' err)" = 40000 ] || { tail err >&2; exit 9; }
grep ': error: ' err | tail -n 1 >&2
exit $status
