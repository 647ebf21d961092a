// Charts as plain SVG. The same numbers are always also shown as text or in a table.
import {announce, h, svg} from './dom.js';
import {count, countShort, dayName} from './format.js';
import {TEXTS} from './texts.js';

const SPARK = {width: 96, height: 24, gap: 0.2};

// One small bar per day. label describes them in words.
export function spark(values, label) {
    const most = Math.max(...values, 1);
    const step = SPARK.width / values.length;
    const bars = values.map((value, i) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * SPARK.height);

        return svg('rect', {
            x: (i * step).toFixed(2),
            y: (SPARK.height - height).toFixed(2),
            width: (step * (1 - SPARK.gap)).toFixed(2),
            height: height.toFixed(2),
            class: value === 0 ? 'none' : 'some',
            rx: 0.6,
        });
    });

    return svg(
        'svg',
        {
            'class': 'spark',
            'viewBox': `0 0 ${SPARK.width} ${SPARK.height}`,
            'role': 'img',
            'aria-label': label,
            'preserveAspectRatio': 'none',
        },
        bars,
    );
}

// A bar for a fraction of the largest value.
export function share(part) {
    return svg(
        'svg',
        {'class': 'share', 'viewBox': '0 0 100 8', 'preserveAspectRatio': 'none', 'aria-hidden': 'true'},
        svg('rect', {width: Math.max(0.5, part * 100).toFixed(2), height: 8}),
    );
}

// In drawing units. The narrow drawing has fewer units, so that its text stays readable.
const WIDE = {width: 960, height: 260, left: 52, right: 8, top: 12, bottom: 28, labels: 8};
const NARROW = {width: 300, height: 220, left: 42, right: 2, top: 12, bottom: 28, labels: 3};
const NARROW_BARS = 14;
const GROUPS = [1, 7, 28];

const narrow = matchMedia('(max-width: 47.5em)');

// Calls `redraw` whenever charts must be drawn again; returns a function that stops this.
export function whenResized(redraw) {
    narrow.addEventListener('change', redraw);
    return () => narrow.removeEventListener('change', redraw);
}

// The number of days per bar. A narrow drawing has few bars, wide enough to tell apart.
const daysPerBar = (days) =>
    narrow.matches ? (GROUPS.find((size) => days / size <= NARROW_BARS) ?? GROUPS.at(-1)) : 1;

const total = (day, series) => series.reduce((sum, {name}) => sum + day[name], 0);

// Groups that end with the newest day; the oldest group may be shorter.
function grouped(days, size, series) {
    const groups = [];

    for (let end = days.length; end > 0; end -= size) {
        const part = days.slice(Math.max(0, end - size), end);
        const group = {first: part[0].date, date: part.at(-1).date};

        for (const {name} of series) group[name] = part.reduce((sum, day) => sum + day[name], 0);
        groups.unshift(group);
    }
    return groups;
}

// Steps of 1, 2 or 5 times a power of ten, up to a round number above the largest value, at most five of them.
function niceScale(most) {
    const rough = Math.max(most, 4) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);

    return {step, top: Math.ceil(Math.max(most, 1) / step) * step};
}

function gridLines(plot, scale, y) {
    const lines = [];

    for (let value = 0; value <= scale.top; value += scale.step)
        lines.push(
            svg('line', {
                class: value === 0 ? 'axis' : 'grid',
                x1: plot.left,
                x2: plot.width - plot.right,
                y1: y(value),
                y2: y(value),
            }),
            svg(
                'text',
                {'class': 'tick', 'x': plot.left - 8, 'y': y(value) + 4, 'text-anchor': 'end'},
                countShort(value),
            ),
        );
    return lines;
}

function dayBars(plot, day, x, step, y, series) {
    let below = 0;
    const bars = series.map(({name}) => {
        const from = y(below);
        const to = y((below += day[name]));

        return svg('rect', {class: name, x: x + step * 0.14, y: to, width: step * 0.72, height: from - to});
    });
    const hit = svg('rect', {
        class: 'hit',
        x,
        y: plot.top,
        width: step,
        height: plot.height - plot.top - plot.bottom,
    });

    return svg('g', {class: 'day'}, hit, bars);
}

function dayLabel(plot, day, x, isLast) {
    return svg(
        'text',
        {
            'class': 'tick',
            'x': isLast ? plot.width - plot.right : x,
            'y': plot.height - 8,
            'text-anchor': isLast ? 'end' : 'middle',
        },
        dayName(day.date),
    );
}

const nameOfGroup = ({first, date}) =>
    first === date ? dayName(date) : TEXTS.time.range(dayName(first), dayName(date));

function tipContent(group, series) {
    return [
        h('strong', null, nameOfGroup(group)),
        series.map(({name, label}) =>
            h('span', {class: 'tip-row'}, h('i', {class: `swatch ${name}`}), label, h('b', null, count(group[name]))),
        ),
    ];
}

// Shows the numbers of the bar under the pointer, or of the one chosen with the arrow keys, which is also read out.
function addTip(chart, {plot, groups, series, step}) {
    const tip = h('div', {'class': 'tip', 'aria-hidden': 'true', 'hidden': true});
    const bars = [...chart.querySelectorAll('.day')];
    let shown = -1;

    function choose(index) {
        if (index === shown) return;
        bars[shown]?.classList.remove('is-chosen');
        shown = index;
        tip.hidden = shown < 0;
        if (shown < 0) return;
        bars[shown].classList.add('is-chosen');
        tip.classList.toggle('to-left', shown >= groups.length / 2);
        tip.style.setProperty('--at', `${(((plot.left + (shown + 0.5) * step) / plot.width) * 100).toFixed(2)}%`);
        tip.replaceChildren(...tipContent(groups[shown], series).flat());
    }
    function pointed(event) {
        const box = chart.firstChild.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * plot.width;
        const index = Math.floor((x - plot.left) / step);

        choose(index >= 0 && index < groups.length ? index : -1);
    }
    function pressed(event) {
        const last = groups.length - 1;
        const targets = {
            ArrowLeft: shown < 0 ? last : Math.max(0, shown - 1),
            ArrowRight: shown < 0 ? 0 : Math.min(last, shown + 1),
            Home: 0,
            End: last,
            Escape: -1,
        };

        if (!(event.key in targets) || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        choose(targets[event.key]);
        if (shown < 0) return;
        const numbers = series.map(({name, label}) => `${count(groups[shown][name])} ${label}`);
        announce(`${nameOfGroup(groups[shown])}: ${numbers.join(', ')}`);
    }

    chart.addEventListener('pointermove', pointed);
    chart.addEventListener('pointerdown', pointed);
    chart.addEventListener('pointerleave', () => choose(-1));
    chart.addEventListener('keydown', pressed);
    chart.addEventListener('blur', () => choose(-1));
    chart.append(tip);
}

function drawing(days, size, {label, series}) {
    const plot = narrow.matches ? NARROW : WIDE;
    const groups = grouped(days, size, series);
    const scale = niceScale(Math.max(...groups.map((day) => total(day, series))));
    const inner = plot.height - plot.top - plot.bottom;
    const y = (value) => Number((plot.top + inner * (1 - value / scale.top)).toFixed(2));
    const step = (plot.width - plot.left - plot.right) / groups.length;
    const labelled = Math.max(1, Math.ceil(groups.length / plot.labels));
    const parts = groups.map((day, i) => {
        const x = plot.left + i * step;
        const fromEnd = groups.length - 1 - i;

        return [
            dayBars(plot, day, x, step, y, series),
            fromEnd % labelled === 0 ? dayLabel(plot, day, x + step / 2, fromEnd === 0) : null,
        ];
    });
    const chart = h(
        'div',
        {'class': narrow.matches ? 'chart narrow' : 'chart', 'tabindex': '0', 'role': 'group', 'aria-label': label},
        svg(
            'svg',
            {'viewBox': `0 0 ${plot.width} ${plot.height}`, 'aria-hidden': 'true'},
            gridLines(plot, scale, y),
            parts,
        ),
    );

    addTip(chart, {plot, groups, series, step});
    return chart;
}

// The chart with its heading and a line below that. days: [{date, and a number by the name of each series}], oldest
// first. series: [{name, label}], from the bottom up. label: what it shows in words, from the heading.
export function usageChart(days, {hint, label, series}) {
    const size = daysPerBar(days.length);
    const title = TEXTS.chart[size];

    return [
        h('h2', null, title),
        hint && h('p', {class: 'hint'}, hint),
        drawing(days, size, {label: label(title), series}),
    ];
}
