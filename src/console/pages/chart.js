// Charts, as plain SVG. Each stands beside the same numbers in words or in a table.
import {h, svg} from './dom.js';
import {count, countShort, dayName} from './format.js';
import {TEXTS} from './texts.js';

const SPARK = {width: 96, height: 24, gap: 0.2};

// A small bar for each day; label says it in words.
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

// How much of the largest.
export function share(part) {
    return svg(
        'svg',
        {'class': 'share', 'viewBox': '0 0 100 8', 'preserveAspectRatio': 'none', 'aria-hidden': 'true'},
        svg('rect', {width: Math.max(0.5, part * 100).toFixed(2), height: 8}),
    );
}

const PLOT = {width: 960, height: 260, left: 52, right: 8, top: 12, bottom: 28};

// 1, 2 or 5 times a power of ten: a round number above, in at most five steps.
function niceScale(most) {
    const rough = Math.max(most, 4) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);

    return {step, top: Math.ceil(Math.max(most, 1) / step) * step};
}

function gridLines(scale, y) {
    const lines = [];

    for (let value = 0; value <= scale.top; value += scale.step)
        lines.push(
            svg('line', {
                class: value === 0 ? 'axis' : 'grid',
                x1: PLOT.left,
                x2: PLOT.width - PLOT.right,
                y1: y(value),
                y2: y(value),
            }),
            svg(
                'text',
                {'class': 'tick', 'x': PLOT.left - 8, 'y': y(value) + 4, 'text-anchor': 'end'},
                countShort(value),
            ),
        );
    return lines;
}

function dayBars(day, x, width, y) {
    const title = svg(
        'title',
        null,
        `${dayName(day.date)}: ${count(day.live)} ${TEXTS.live.toLowerCase()}, ${count(day.test)} ${TEXTS.test.toLowerCase()}`,
    );
    const bars = [
        svg('rect', {
            class: 'hit',
            x: x - width * 0.1,
            y: PLOT.top,
            width: width * 1.2,
            height: PLOT.height - PLOT.top - PLOT.bottom,
        }),
        svg('rect', {class: 'live', x, y: y(day.live), width, height: y(0) - y(day.live)}),
        svg('rect', {class: 'test', x, y: y(day.live + day.test), width, height: y(day.live) - y(day.live + day.test)}),
    ];

    return svg('g', {class: 'day'}, title, bars);
}

// days: [{date, live, test}], oldest first.
export function usageChart(days, label) {
    const scale = niceScale(Math.max(...days.map((day) => day.live + day.test)));
    const inner = PLOT.height - PLOT.top - PLOT.bottom;
    const y = (value) => Number((PLOT.top + inner * (1 - value / scale.top)).toFixed(2));
    const step = (PLOT.width - PLOT.left - PLOT.right) / days.length;
    const labelled = Math.max(1, Math.ceil(days.length / 8));
    const parts = days.map((day, i) => {
        const x = PLOT.left + i * step;
        const isLabelled = (days.length - 1 - i) % labelled === 0;

        return [
            dayBars(day, x + step * 0.14, step * 0.72, y),
            isLabelled
                ? svg(
                      'text',
                      {'class': 'tick', 'x': x + step / 2, 'y': PLOT.height - 8, 'text-anchor': 'middle'},
                      dayName(day.date),
                  )
                : null,
        ];
    });

    return h(
        'div',
        {'class': 'chart', 'tabindex': '0', 'role': 'group', 'aria-label': label},
        svg(
            'svg',
            {'viewBox': `0 0 ${PLOT.width} ${PLOT.height}`, 'role': 'img', 'aria-label': label},
            gridLines(scale, y),
            parts,
        ),
    );
}
