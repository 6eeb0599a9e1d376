# Plans of the examples, and of the smaller models of the same names in tests/golden, for tests that run them on
# several ranks.

# recipe MODEL KIND SHAPE: lines for --place.  KIND is data, tensor, zero3 or mixed; SHAPE is that of the mesh: 4, or
# 2, 2.  A mixed plan splits the batch along the first axis and tensors along the last; along axes between, parameters
# are broadcast.
recipe() {
	local model=$1 kind=$2 shape=$3 before= after= k
	local dims=${shape//[!,]/} && dims=$((${#dims} + 1))
	for ((k = 1; k < dims; k++)); do
		before+='B, '
		after+=', B'
	done
	echo "@mesh(m, cpu, [$shape])"
	names "$model"
	case $kind in
	data)
		echo "@pin($inputs, sbp: [S(0)$after])"
		echo "@pin($kept, sbp: [B$after])"
		;;
	zero3)
		echo "@pin($inputs, sbp: [S(0)$after])"
		echo "@pin($kept, sbp: [S(0)$after])"
		[ "$model" != lstm ] || echo "@pin(\"cell.w\", \"cell.r\", \"cell.b\", sbp: [S(1)$after])"
		;;
	tensor)
		echo "@pin($inputs, sbp: [B$after])"
		cuts "$model"
		;;
	mixed)
		echo "@pin($inputs, sbp: [S(0)$after])"
		cuts "$model"
		;;
	esac
}
# What the model reads, and what it keeps and can be split along its first axis.
names() {
	kept='"*.w", "*.b"'
	case $1 in
	gpt | llama) inputs='"tokens", "targets"' ;;
	bert) inputs='"tokens", "segments", "present", "labels"' ;;
	lstm) inputs='"characters", "next"' kept='"embed.w", "head.w", "head.b"' ;;
	wide_deep) inputs='"category", "crossed", "dense", "clicked"' ;;
	mlp | dropout) inputs='"image", "label"' kept='"w1", "w2", "b1", "b2"' ;;
	losses) inputs='"x", "t", "label"' kept='"u", "w", "b", "fixed"' ;;
	resnet) inputs='"image", "label"' kept='"*.conv*", "b2.short", "*.norm*.w", "*.norm*.b", "dense.w", "dense.b"' ;;
	*) inputs='"image", "label"' ;;
	esac
	[ "$1" != llama ] || kept='"*.w"'
}
# Columns of one weight and rows of the next, with no transfer in between.
cuts() {
	case $1 in
	gpt)
		cut 'S(1/1)' '"*.qkv.w"' && cut 'S(0/1)' '"*.qkv.b"'
		cut 'S(0)' '"*.out.w", "*.up.b", "*.down.w"' && cut 'S(1)' '"*.up.w"'
		;;
	bert)
		cut 'S(1/0)' '"*.q.w", "*.k.w", "*.v.w"' && cut 'S(0/0)' '"*.q.b", "*.k.b", "*.v.b", "*.out.w"'
		cut 'S(1)' '"*.up.w"' && cut 'S(0)' '"*.up.b", "*.down.w"'
		;;
	llama)
		cut 'S(1/0)' '"q.w", "k.w", "v.w"' && cut 'S(0/0)' '"out.w"'
		cut 'S(1)' '"gate.w", "up.w"' && cut 'S(0)' '"down.w"'
		;;
	lstm) cut 'S(1)' '"embed.w", "head.w"' && cut 'S(0)' '"head.b"' ;;
	cnn) cut 'S(0)' '"conv1.w", "conv1.b"' && cut 'S(1)' '"conv2.w"' ;;
	resnet) cut 'S(0)' '"b1.conv1", "b1.norm1.*", "b2.conv1", "b2.norm1.*"' && cut 'S(1)' '"b1.conv2", "b2.conv2"' ;;
	wide_deep) cut 'S(1)' '"embed.w", "deep1.w"' && cut 'S(0)' '"deep1.b", "deep2.w"' ;;
	losses) cut 'S(1)' '"u"' && cut 'S(0)' '"w"' ;;
	*) cut 'S(1)' '"w1"' && cut 'S(0)' '"b1", "w2"' ;;
	esac
}
cut() { echo "@pin($2, sbp: [$before$1])"; }
