# What the golden tests share.

# tree MODEL OPTION...: the program of the model in tree/.  Files that equal those of the last tree are not compiled
# again.
tree() {
	"$SBPCC" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}

# run WANT OPTION...: trains, from fresh files.
run() {
	local want=$1
	shift
	rm -rf dump state steps.log
	tree/trainer --log=steps.log --checkpoint=state --data="$(dirname "$want")/data" --dump=dump "$@" >log 2>&1
}

# golden NAME WANT MODEL TRAIN: trains and compares.
golden() {
	local name=$1 want=$2 code after
	tree "$3" --train="$4" && run "$want" || { echo "not ok $name: $(head -n 1 log)" && return; }
	mv steps.log losses && mv state/step-*/state.safetensors end.safetensors
	after=$(sed -n 's/^after //p' "$want")
	if [ -n "$after" ]; then
		mv dump first && run "$want" --steps="$after" || { echo "not ok $name: $(head -n 1 log)" && return; }
		mv state/step-*/state.safetensors end.safetensors && rm -rf dump && mv first dump
	fi
	"$PLAIN/test-golden-train" "$want" losses dump end.safetensors >why 2>&1
	code=$?
	if [ $code -eq 0 ]; then echo "ok $name"; else echo "not ok $name: not as PyTorch"; fi
	sed 's/^\([^#]\)/ \1/' why
}

# all WANT...: each as its file says, and in other ways that must give the same.
all() {
	local want name model how also
	for want in "$@"; do
		name=$(basename "$(dirname "$want")") && name=${name%.onnx}
		case $want in */want.txt) ;; *) name=$name.$(basename "${want%.txt}" | cut -d. -f2) ;; esac
		model=$ROOT/tests/$(sed -n 's/^model //p' "$want") how=$(sed -n 's/^train //p' "$want")
		golden "$name" "$want" "$model" "$how"
		sed -n 's/^also //p' "$want" >also
		while read -r also; do
			golden "$name.${also//[: ]/}" "$want" "$model" "$how, $also"
		done <also
	done
}

# ranks NAME WANT PLACE OPTION...: trains under the plan of a side file, on as many ranks as it asks for, and compares.
ranks() {
	local name=$1 want=$2 model how
	model=$ROOT/tests/$(sed -n 's/^model //p' "$want") how=$(sed -n 's/^train //p' "$want")
	tree "$model" --place="$3" --train="$how" && run "$want" "${@:4}" || { echo "not ok $name: $(head -n 1 log)" && return; }
	if "$PLAIN/test-golden-train" "$want" steps.log dump state/step-*/state.safetensors >why 2>&1; then echo "ok $name"; else echo "not ok $name: not as PyTorch"; fi
	sed 's/^\([^#]\)/ \1/' why
}
