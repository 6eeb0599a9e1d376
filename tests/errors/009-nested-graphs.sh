# exit: 5
{ printf 'g () => (y) { y = If (c) '; yes '<then_branch = g () => (y) { y = If (c)' | head -n 200000; } >model.ir
"$SBPCC" model.ir -o out
