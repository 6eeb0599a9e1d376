# exit: 5
{ printf 'g ('; yes 'seq(' | head -n 2500000 | tr -d '\n'; } >model.ir
"$SBPCC" model.ir -o out
