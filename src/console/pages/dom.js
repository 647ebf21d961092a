// Creates elements from text and attributes. Markup is never made from strings.

const SVG = 'http://www.w3.org/2000/svg';

function setProperty(element, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : plain(value));
}

function build(element, properties, children) {
    for (const [name, value] of Object.entries(properties ?? {})) setProperty(element, name, value);
    element.append(
        ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
    );
    return element;
}

// properties: attributes, and listeners such as onclick. An attribute may be a sentence with foreign text in it.
// children: nodes, strings, or lists of them; null is skipped.
export function h(tag, properties, ...children) {
    return build(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
    return build(document.createElementNS(SVG, tag), properties, children);
}

// A button that submits nothing. content: as children of h(). attributes: further ones.
export const newButton = (className, run, content, attributes) =>
    h('button', {type: 'button', class: className, onclick: run, ...attributes}, content);

export const bullets = (properties, items) => h('ul', properties, items.map((item) => h('li', null, item)));

// Text that others chose: names, emails, what browsers and devices call themselves.

// They turn the direction of what stands after them. Names of earlier versions may hold some, and the end of an isolate
// would end that of <bdi>, too.
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

// The element for it, which keeps its direction to itself.
export const foreign = (text) => h('bdi', null, String(text).replace(TURNING, '\ufffd'));

// A sentence with foreign text in it, as a list of nodes and strings: say`Remove ${email}?`
export const say = (words, ...values) =>
    words.flatMap((part, i) => {
        const value = values[i];

        if (i === values.length) return [part];
        return [part, value instanceof Node || Array.isArray(value) ? value : foreign(value)];
    });

function plainPart(part) {
    if (!(part instanceof Node)) return String(part ?? '');
    return RIGHT_TO_LEFT.test(part.textContent) ? `\u2068${part.textContent}\u2069` : part.textContent;
}

// The same where no elements are possible. What is written from right to left is isolated by characters (UAX #9).
export const plain = (sentence) => [sentence].flat(Infinity).map(plainPart).join('');

// As JSON that prints as it is.
export const plainJson = (value) =>
    JSON.stringify(value, null, 2).replace(TURNING, (c) => `\\u${c.charCodeAt(0).toString(16)}`);

// Strokes on a 20 × 20 grid.
const ICONS = {
    key: ['M12.5 3a4.5 4.5 0 1 1-4 6.5L3 15v2.5h3V15h2v-2h1.5l.8-.8', 'M13.4 6.6h.01'],
    device: ['M3 4h14v9H3z', 'M7 17h6', 'M10 13v4'],
    activity: ['M2.5 10h3.2l2.3-6 4 12 2.3-6h3.2'],
    usage: ['M3 17h14', 'M5 14V9', 'M10 14V4', 'M15 14v-3'],
    person: ['M10 10a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4z', 'M3.8 17a6.2 6.2 0 0 1 12.4 0'],
    terminal: ['M2.500 4h15v12h-15z', 'M5.500 8l2.500 2-2.500 2', 'M10 12.500h4'],
    service: ['M3 3.500h14v5H3z', 'M3 11.500h14v5H3z', 'M6 6h.01', 'M6 14h.01'],
    stranger: ['M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16z', 'M7.800 7.800a2.300 2.300 0 1 1 3 2.300c-.6.2-.8.6-.8 1.400', 'M10 14.200h.01'],
    people: [
        'M7.500 9.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
        'M2 16.500a5.500 5.500 0 0 1 11 0',
        'M13 3.900a3 3 0 0 1 0 5.200',
        'M15 12a5.500 5.500 0 0 1 3 4.500',
    ],
    out: ['M8 3.500H4v13h4', 'M8.500 10H17', 'M13.500 6.500 17 10l-3.500 3.500'],
    down: ['M5 8l5 5 5-5'],
    print: ['M6 8V3h8v5', 'M6 14H3V8h14v6h-3', 'M6 12h8v5H6z'],
    plus: ['M10 4v12', 'M4 10h12'],
    search: ['M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12z', 'M13.5 13.5 17 17'],
    copy: ['M7 7h10v10H7z', 'M13 7V3H3v10h4'],
    done: ['M4 10.5 8.2 15 16 5.5'],
    download: ['M10 3v10', 'M5.5 9 10 13.5 14.5 9', 'M3.5 17h13'],
    close: ['M5 5l10 10', 'M15 5 5 15'],
    warn: ['M10 3 18 17H2z', 'M10 8v4', 'M10 14.4h.01'],
    info: ['M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16z', 'M10 9v5', 'M10 6.2h.01'],
    ban: ['M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14z', 'M5.2 5.2l9.6 9.6'],
    cloud: [
        'M3 3l14 14',
        'M6 8.2A4 4 0 0 0 6.500 16H13',
        'M9 5.200a4.500 4.500 0 0 1 5.500 3.600A3.700 3.700 0 0 1 17 14',
    ],
    shield: ['M10 2.500 16 5v5c0 4-3 6.500-6 7.500C7 16.500 4 14 4 10V5z', 'M7.500 10l2 2 3.500-4'],
    older: ['M8 5l5 5-5 5'],
    newer: ['M12 5l-5 5 5 5'],
};

export function icon(name) {
    const paths = ICONS[name].map((d) => svg('path', {d}));
    return svg('svg', {'class': 'icon', 'viewBox': '0 0 20 20', 'aria-hidden': 'true', 'focusable': 'false'}, paths);
}

export function show(container, ...children) {
    container.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

let lastId = 0;

export function newId(stem) {
    lastId += 1;
    return `${stem}-${lastId}`;
}

// Screen readers read the sentence out once.
export function announce(sentence) {
    document.getElementById('announcer').textContent = plain(sentence);
}
