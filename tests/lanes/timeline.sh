# --html writes a page with a timeline: self-contained, small, the tasks of the play (as --trace has them), names escaped. Where
# chromium is installed, the page is opened: the pointer shows a task and what it waited for; wheel and keys zoom and pan.
printf 'ranks 3\nmicros 5\nF 1 ms\nB 1.2 ms\nW 0.7 ms\nupdate 1 ms\nhop 0.5 ms\nbusy 0.25 ms\nkept 10 MB\nschedule zb-h1\n' >'a<b&"c.pipe'
"$SBPCC" --simulate='a<b&"c.pipe' --html=t.html --trace=t.json >/dev/null || exit 1
check() { if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: $2 instead of $3"; fi; }
check 'no other file, no network' "$(grep -cE 'https?:|src=|@import|url\(|fetch|XMLHttp|import ' t.html)" 0
check 'the title is escaped' "$(grep -c '<title>Timeline of a&#60;b&#38;&#34;c.pipe</title>' t.html)" 1
check 'one script, one canvas' "$(grep -c '<script>' t.html) $(grep -c '<canvas' t.html) $(grep -c '</script>' t.html)" '1 1 1'
check 'dark and light' "$(grep -c 'prefers-color-scheme: dark' t.html)" 2

# Every task of the page and of the trace: lane, start, duration, in nanoseconds.
awk '
function value(s, i, v, sign) { sign = sub(/^-/, "", s) ? -1 : 1; for (i = 1; i <= length(s); i++) v = v * 36 + index(digits, substr(s, i, 1)) - 1; return sign * v }
BEGIN { digits = "0123456789abcdefghijklmnopqrstuvwxyz"; role = -1 }
match($0, /unit:[0-9.e-]+/) { unit = substr($0, RSTART + 5, RLENGTH - 5) }
/^{name:/ { role++; lane = 0 }
match($0, /tasks:"[^"]*"/) {
	n = split(substr($0, RSTART + 7, RLENGTH - 8), token, ".") - 1
	delete length_of
	id = 0; now = 0
	for (i = 1; i <= n; i++) {
		s = token[i]; gap = 0; d = ""
		while (match(s, /[A-Z][0-9a-z-]*/)) {
			f = substr(s, RSTART, 1); v = value(substr(s, RSTART + 1, RLENGTH - 1)); s = substr(s, RSTART + RLENGTH)
			if (f == "B") id = v
			if (f == "G") gap = v
			if (f == "D") d = v
		}
		if (d == "") d = length_of[id] + 0
		length_of[id] = d
		printf "%d %d %.0f %.0f\n", role, lane, (now + gap) * unit * 1e9, d * unit * 1e9
		now += gap + d
	}
	lane++
}' t.html >page
awk -F'[:,}]' '/"ph":"X"/ { for (i = 1; i < NF; i++) v[$i] = $(i + 1); printf "%d %d %.0f %.0f\n", v["\"pid\""], v["\"tid\""], v["\"ts\""] * 1e3, v["\"dur\""] * 1e3 }' t.json >trace
check 'the tasks of the trace, with their times' "$(wc -l <page) $(cmp page trace && echo equal)" "$(grep -c '"ph":"X"' t.json) equal"

printf 'ranks 64\nstages 128\nmicros 256\nF 10.402 ms\nB 10.248 ms\nW 7.698 ms\nhop 0.46 ms\nschedule zb-v\n' >large.pipe
"$SBPCC" --simulate=large.pipe --html=large.html >/dev/null || exit 1
if [ "$(wc -c <large.html)" -lt 3000000 ]; then echo "ok 64 ranks x 256 micro-batches in less than 3 MB"; else echo "not ok size: $(wc -c <large.html) bytes"; fi
"$SBPCC" --simulate=large.pipe --html=none/t.html >/dev/null 2>err
check 'a folder that does not exist' "$? $(grep -c 'cannot write none/t.html' err)" '4 1'

command -v chromium >/dev/null || { echo "skip page: chromium is not installed" && exit; }
cat >ask.js <<'JS'
<script>
addEventListener('load', () => setTimeout(() => {
	const canvas = document.querySelector('canvas'), tip = document.querySelector('output'), box = canvas.getBoundingClientRect(), said = []
	const wide = canvas.clientWidth - 150, at = share => box.left + 150 + share * wide
	const point = (share, y) => {
		canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: at(share), clientY: box.top + y, bubbles: true}))
		said.push(tip.textContent.replaceAll('\n', '; '))
	}
	const wheel = (share, by) => canvas.dispatchEvent(new WheelEvent('wheel', {clientX: at(share), clientY: box.top + 30, deltaY: by, cancelable: true}))
	const key = name => canvas.dispatchEvent(new KeyboardEvent('keydown', {key: name}))
	point(0.02, 30)
	point(0.9, 30)
	wheel(0, -5000)
	point(0.9, 30)
	key('0')
	point(0.9, 30)
	key('+')
	key('ArrowLeft')
	point(0.9, 30)
	const pre = document.createElement('pre')
	pre.id = 'said'
	pre.textContent = '\n' + said.join('\n') + '\n'
	document.body.append(pre)
}, 200))
</script>
JS
cat t.html ask.js >asked.html
timeout 120 chromium --headless --no-sandbox --disable-gpu --window-size=1000,700 --virtual-time-budget=3000 --dump-dom asked.html 2>log |
	sed -n '/<pre id="said">/,/<\/pre>/p' | sed '1d;$d' | sed 's/&gt;/>/g' >said
[ -s said ] || { echo "skip page: chromium does not run here ($(tail -n 1 log | cut -c 1-80))" && exit; }
cat >want <<'EOT'
rank 0, compute; F0 of micro-batch 0; from 0.000 ms to 1.000 ms, 1.000 ms
EOT
sed -n 1p said | cmp -s - want && echo "ok the pointer shows a task" || echo "not ok pointer: $(sed -n 1p said)"
check 'and what it waited for' "$(sed -n 2p said | grep -c 'it waited .* for a piece of g1>0\|waits for a piece of g1>0')" 1
check 'the wheel zooms' "$(sed -n 3p said)" 'rank 0, compute; F0 of micro-batch 0; from 0.000 ms to 1.000 ms, 1.000 ms'
check '0 shows everything again' "$(sed -n 4p said)" "$(sed -n 2p said)"
[ "$(sed -n 5p said)" != "$(sed -n 4p said)" ] && echo "ok keys zoom and pan" || echo "not ok keys: $(sed -n 5p said)"
