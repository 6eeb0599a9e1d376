# Each of 10,000 patterns is compared with the few names that it can match, not with all; only the last matches none.
{ echo 'g (float[2] x) => (float[2] y) {'; seq -f '"h.%.0f.w" = Abs(x)' 1 60000; echo 'y = Abs(x) }'; } >model.ir
{ seq -f '@place("h.%.0f.*", stage: 1)' 10001 15000; seq -f '@place("*.%.0f.w", stage: 1)' 20001 25000; echo '@place("i.*.w", stage: 1)'; } >place
"$SBPCC" model.ir --place=place -o out
