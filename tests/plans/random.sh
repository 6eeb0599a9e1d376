# All seeds with the plain build; some others under the sanitizers, where one takes ten times as long.
"$PLAIN/test-plans-random"
"$BUILD/test-plans-random" 1000001 "${LONG:+20}50"
