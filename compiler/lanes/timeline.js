// Draws a timeline: `play` is what timeline.c writes. A lane's tasks are a text, a token for each, ended by a dot. Numbers are in base 36, times in
// play.unit seconds. Fields of a token, each with what it is if left out:
//   B block (that of the token before)      M micro-batch (the next one of this block)      G time since the end of the token before (0)
//   D duration (the last one of this block) and what it waited for, if anything (the last one of this block, where G is given):
//   P a piece of a register, R room in one, C the other end of a channel, T a meeting, N nothing
const fields = /([BMGDPRCTN])([0-9a-z-]*)/g
const waits = {P: r => n => 'a piece of ' + r.regs[n], R: r => n => 'room in ' + r.regs[n], C: () => n => 'the other end of ' + play.channels[n],
	T: () => n => 'the meeting ' + play.meets[n]}
const lanes = []
for (const role of play.roles)
	for (const lane of role.lanes) {
		const last = new Map(), n = lane.tasks.split('.').length - 1
		const l = {role, name: lane.name, kind: lane.kind, block: new Int32Array(n), micro: new Int32Array(n), start: new Float64Array(n),
			end: new Float64Array(n), wait: []}
		let id = 0, now = 0, i = 0
		for (const token of lane.tasks.split('.').slice(0, n)) {
			const f = {}
			for (const [, key, value] of token.matchAll(fields))
				f[key] = value === '' ? 0 : parseInt(value, 36)
			id = f.B ?? id
			const was = last.get(id) ?? {micro: -1, length: 0, wait: null}
			const cause = Object.keys(waits).find(k => k in f)
			if (cause)
				was.wait = [cause, f[cause]]
			else if ('N' in f)
				was.wait = null
			was.micro = f.M ?? was.micro + 1
			was.length = f.D ?? was.length
			last.set(id, was)
			l.block[i] = id
			l.micro[i] = was.micro
			l.start[i] = now + (f.G ?? 0)
			l.end[i] = now = l.start[i] + was.length
			l.wait.push(f.G ? was.wait : null)
			i++
		}
		lanes.push(l)
	}

const root = document.currentScript.previousElementSibling, canvas = root.querySelector('canvas'), tip = root.querySelector('output')
const g = canvas.getContext('2d'), left = 150, top = 22
let from = 0, to = play.end, scroll = 0, rows = [], high = 0, colour = {}, hot = null
const transfers = root.querySelector('input')
transfers.checked = lanes.length <= 60

function time(t) {
	const s = t * play.unit, u = play.end * play.unit
	return u < 1e-3 ? (s * 1e6).toFixed(3) + ' us' : u < 10 ? (s * 1e3).toFixed(3) + ' ms' : s.toFixed(3) + ' s'
}
const name = (l, i) => l.kind === 'C' ? l.role.blocks[l.block[i]][0] : play.channels[l.block[i]]
const kind = (l, i) => l.kind === 'C' ? l.role.blocks[l.block[i]][1] : l.kind
const full = (l, i) => (l.kind === 'S' ? 'send ' : l.kind === 'V' ? 'receive ' : '') + name(l, i) + (l.micro[i] < 0 ? '' : ' of micro-batch ' + l.micro[i])

// The first task of a lane that ends behind t.
function find(l, t) {
	let a = 0, b = l.end.length
	while (a < b) {
		const m = (a + b) >> 1
		if (l.end[m] <= t) a = m + 1
		else b = m
	}
	return a
}

function layout() {
	rows = []
	high = 0
	for (const l of lanes)
		if (l.kind === 'C' || transfers.checked) {
			const h = l.kind === 'C' ? 20 : 12
			rows.push({l, y: high, h})
			high += h
		}
	const ratio = devicePixelRatio || 1, wide = root.clientWidth, tall = top + Math.min(high, Math.max(200, innerHeight - 220))
	canvas.width = Math.round(wide * ratio)
	canvas.height = Math.round(tall * ratio)
	canvas.style.height = tall + 'px'
	g.setTransform(ratio, 0, 0, ratio, 0, 0)
	const style = getComputedStyle(root)
	for (const c of ['F', 'B', 'W', 'U', 'O', 'S', 'V', 'idle', 'ink', 'on', 'line', 'paper'])
		colour[c] = style.getPropertyValue('--' + c).trim()
	draw()
}

const size = () => ({wide: canvas.clientWidth - left, tall: canvas.clientHeight - top})
const x = t => left + (t - from) / (to - from) * size().wide

function axis() {
	const {wide, tall} = size(), least = (to - from) / wide * 90
	let step = 10 ** Math.floor(Math.log10(least))
	step *= [1, 2, 5, 10].find(k => k * step >= least) ?? 10
	g.fillStyle = colour.ink
	g.strokeStyle = colour.line
	for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
		if (x(t) + 65 < left + wide)
			g.fillText(time(t), x(t) + 3, 10)
		g.beginPath()
		g.moveTo(x(t) + 0.5, 0)
		g.lineTo(x(t) + 0.5, top + tall)
		g.stroke()
	}
}

function drawLane(l, y, h) {
	const {wide} = size(), pixel = (to - from) / wide
	g.fillStyle = colour.idle
	g.fillRect(left, y, wide, h - 2)
	for (let i = find(l, from); i < l.start.length && l.start[i] < to; i++) {
		const a = Math.max(left, x(l.start[i])), b = Math.min(left + wide, x(l.end[i]))
		g.fillStyle = colour[kind(l, i)]
		g.fillRect(a, y, Math.max(b - a - (b - a > 4 ? 1 : 0), 0.5), h - 2)
		if (b - a > 16 && h > 14) {
			const text = b - a > 60 && l.micro[i] >= 0 ? name(l, i) + ' ' + l.micro[i] : l.micro[i] < 0 ? name(l, i) : String(l.micro[i])
			g.fillStyle = colour.on
			if (g.measureText(text).width < b - a - 4)
				g.fillText(text, a + 3, y + 13)
		}
		if (b - a < 0.5)        // nothing else of this pixel can be seen
			i = Math.max(i, find(l, l.start[i] + pixel / 2) - 1)
	}
}

function draw() {
	const {wide, tall} = size()
	scroll = Math.max(0, Math.min(scroll, high - tall))
	g.font = '11px sans-serif'
	g.fillStyle = colour.paper
	g.fillRect(0, 0, left + wide, top + tall)
	axis()
	g.save()
	g.beginPath()
	g.rect(0, top, left + wide, tall)
	g.clip()
	for (const r of rows) {
		const y = top + r.y - scroll
		if (y + r.h < top || y > top + tall)
			continue
		drawLane(r.l, y, r.h)
		const text = r.l.kind === 'C' ? r.l.role.name + (r.l.name === 'compute' ? '' : ' ' + r.l.name) : '    ' + r.l.name
		g.font = r.h > 14 ? 'bold 11px sans-serif' : '9px sans-serif'
		g.fillStyle = colour.ink
		g.fillText(text, 4, y + r.h - 6 + (r.h > 14 ? 0 : 2), left - 8)
		g.font = '11px sans-serif'
	}
	if (hot && hot.i < hot.l.start.length) {
		const r = rows.find(r => r.l === hot.l)
		g.strokeStyle = colour.ink
		g.strokeRect(Math.max(left, x(hot.l.start[hot.i])), top + r.y - scroll, x(hot.l.end[hot.i]) - Math.max(left, x(hot.l.start[hot.i])), r.h - 2)
	}
	g.restore()
}

function zoom(factor, at) {
	const length = Math.min(play.end, Math.max(play.end / 1e6, (to - from) * factor)), share = (at - from) / (to - from)
	from = Math.max(0, Math.min(play.end - length, at - share * length))
	to = from + length
	draw()
}
function pan(dt, dy) {
	const d = Math.max(-from, Math.min(play.end - to, dt))
	from += d
	to += d
	scroll += dy
	draw()
}

function describe(px, py) {
	const {wide} = size(), t = from + (px - left) / wide * (to - from), r = rows.find(r => py - top + scroll >= r.y && py - top + scroll < r.y + r.h)
	hot = null
	if (!r || px < left || py < top)
		return ''
	const l = r.l, i = find(l, t), where = l.role.name + ', ' + l.name + '\n'
	if (i === l.start.length)
		return where + 'idle from ' + time(i ? l.end[i - 1] : 0) + ' on'
	const w = l.wait[i], why = w ? waits[w[0]](l.role)(w[1]) : 'nothing', was = i ? l.end[i - 1] : 0
	if (l.start[i] > t)
		return where + 'idle from ' + time(was) + ' to ' + time(l.start[i]) + '\n' + full(l, i) + ' waits for ' + why
	hot = {l, i}
	return where + full(l, i) + '\nfrom ' + time(l.start[i]) + ' to ' + time(l.end[i]) + ', ' + time(l.end[i] - l.start[i]) +
		(l.start[i] > was ? '\nit waited ' + time(l.start[i] - was) + ' for ' + why : '')
}

let drag = null
canvas.addEventListener('pointermove', e => {
	const box = canvas.getBoundingClientRect(), px = e.clientX - box.left, py = e.clientY - box.top
	if (drag) {
		pan((drag.x - px) / size().wide * (to - from), drag.y - py)
		drag = {x: px, y: py}
	}
	const text = describe(px, py)
	draw()
	tip.textContent = text
	tip.style.visibility = text ? 'visible' : 'hidden'
	tip.style.left = Math.max(0, Math.min(px + 14, root.clientWidth - tip.offsetWidth)) + 'px'
	tip.style.top = canvas.offsetTop + py + 18 + 'px'
})
canvas.addEventListener('pointerdown', e => {
	const box = canvas.getBoundingClientRect()
	drag = {x: e.clientX - box.left, y: e.clientY - box.top}
	canvas.setPointerCapture(e.pointerId)
	canvas.focus()
})
canvas.addEventListener('pointerup', () => { drag = null })
canvas.addEventListener('pointerleave', () => { hot = null; tip.style.visibility = 'hidden'; draw() })
canvas.addEventListener('wheel', e => {
	e.preventDefault()
	const {wide} = size(), by = e.deltaY || e.deltaX
	if (e.shiftKey || !e.deltaY)
		pan((e.deltaX || e.deltaY) / wide * (to - from), 0)
	else if (e.altKey)
		pan(0, by)
	else
		zoom(1.002 ** by, from + Math.max(0, e.clientX - canvas.getBoundingClientRect().left - left) / wide * (to - from))
}, {passive: false})
canvas.addEventListener('keydown', e => {
	const step = (to - from) / 10, middle = (from + to) / 2
	const keys = {ArrowLeft: () => pan(-step, 0), ArrowRight: () => pan(step, 0), ArrowUp: () => pan(0, -40), ArrowDown: () => pan(0, 40),
		PageUp: () => pan(0, -size().tall), PageDown: () => pan(0, size().tall), '+': () => zoom(0.7, middle), '=': () => zoom(0.7, middle),
		'-': () => zoom(1 / 0.7, middle), Home: () => { from = 0; to = play.end; draw() }, 0: () => { from = 0; to = play.end; draw() }}
	if (keys[e.key] && !e.ctrlKey && !e.metaKey) {
		e.preventDefault()
		keys[e.key]()
	}
})
transfers.addEventListener('change', layout)
layout()
new ResizeObserver(layout).observe(root)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', layout)
