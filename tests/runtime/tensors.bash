# safe FILE NAME:TYPE:SHAPE:DATA...: writes a safetensors file; SHAPE as in 2,3; DATA a file of so many bytes, or z
# for zeros.
safe() {
	local to=$1 head='' at=0 n d spec name type shape data i
	shift
	: >"$to.data"
	for spec; do
		IFS=: read -r name type shape data <<<"$spec"
		case $type in F64 | I64) n=8 ;; F16 | BF16) n=2 ;; *) n=4 ;; esac
		for d in ${shape//,/ }; do n=$((n * d)); done
		if [ "$data" = z ]; then head -c "$n" /dev/zero; else head -c "$n" "$data"; fi >>"$to.data"
		head="$head${head:+,}\"$name\":{\"dtype\":\"$type\",\"shape\":[$shape],\"data_offsets\":[$at,$((at + n))]}"
		at=$((at + n))
	done
	head="{$head}"
	for ((i = 0, n = ${#head}; i < 8; i++, n >>= 8)); do printf "\\x$(printf %x $((n & 255)))"; done >"$to"
	printf %s "$head" >>"$to"
	cat "$to.data" >>"$to"
	rm "$to.data"
}
# bytes FOLDER NAME: the checksum of a tensor of FOLDER/model.safetensors.
bytes() {
	local at
	at=$(head -c 4096 "$1/model.safetensors" | grep -ao "\"$2\":{[^}]*}" | sed 's/.*data_offsets":\[\([0-9]*\),\([0-9]*\).*/\1 \2/')
	set -- "$1" $at
	tail -c +$((9 + $(od -An -tu8 -N8 "$1/model.safetensors") + $2)) "$1/model.safetensors" | head -c $(($3 - $2)) | cksum
}
