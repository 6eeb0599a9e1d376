. "$HERE/fuzz"
i=0
mkdir -p all
for f in "$ROOT"/tests/passes/*/*.want; do
	case $(head -c 1 "$f") in [@\<a-z]) cp "$f" "all/$((i += 1)).ir" ;; esac
done
fuzz dumps all/*
