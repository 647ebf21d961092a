// Parts of the documentation: Markdown of the description, rows of schemas, examples with their languages.
import {copyButton} from './copy.js';
import {LANGUAGES} from './docs_examples.js';
import {cells} from './docs_model.js';
import {TEXTS} from './docs_texts.js';
import {h, newButton, show} from './dom.js';

// Markdown, as far as descriptions use it: headings, tables, lists, paragraphs; `code` and **strong**.

// codes: a Map of error codes to their addresses; `code` that is one becomes a link.
export function inline(text, codes) {
    return text.split(/(\x60[^\x60]+\x60|\*\*.+?\*\*)/).map((part) => {
        if (part.startsWith('**')) return h('strong', null, inline(part.slice(2, -2), codes));
        if (!part.startsWith('\x60') || part.length < 3) return part;
        const word = part.slice(1, -1);
        const code = h('code', null, word);

        return codes?.has(word) ? h('a', {href: codes.get(word)}, code) : code;
    });
}

// What a cell of a table says, as a sentence.
export const sentence = (cell, codes) => inline(/[.!?]$/.test(cell) ? cell : `${cell}.`, codes);

function tableOf(names, rows) {
    return h(
        'div',
        {class: 'table-space', tabindex: 0, role: 'group', 'aria-label': names.filter(Boolean).join(', ')},
        h(
            'table',
            null,
            h('thead', null, h('tr', null, names.map((name) => (name ? h('th', {scope: 'col'}, name) : h('td'))))),
            h('tbody', null, rows.map((row) => h('tr', null, row.map((cell) => h('td', null, cell))))),
        ),
    );
}

function block(lines, codes) {
    if (lines[0].startsWith('- '))
        return h('ul', {class: 'points'}, lines.map((line) => h('li', null, inline(line.slice(2), codes))));
    if (lines[0].startsWith('|')) {
        const [names, , ...rows] = lines.map(cells);

        return tableOf(names, rows.map((row) => row.map((cell) => inline(cell, codes))));
    }
    return h('p', null, inline(lines.join(' '), codes));
}

const kindOf = (line) => (line.startsWith('- ') || line.startsWith('|') ? line[0] : 'p');

export function markdown(text = '', codes = undefined) {
    const groups = [];

    for (const line of text.split('\n')) {
        const last = groups.at(-1);

        if (!line) groups.push([]);
        else if (last?.length && kindOf(last[0]) === kindOf(line)) last.push(line);
        else groups.push([line]);
    }
    return groups.filter((lines) => lines.length).map((lines) => block(lines, codes));
}

// Rows of schemas

const {facts} = TEXTS;

function typeOf(description, schema) {
    const {type, items, oneOf, properties, format} = schema;

    if (oneOf) return oneOf.map((each) => typeOf(description, description.schema(each))).join(facts.or);
    if (type === 'array') return facts.list(typeOf(description, description.schema(items)));
    if (Array.isArray(type)) return type.join(facts.or);
    return [type ?? (properties ? 'object' : facts.any), format].filter(Boolean).join(', ');
}

const counted = (words, number, [one, many]) => words + (number === 1 ? one : many);

function range(low, high, unit) {
    const print = (number) => number.toLocaleString('en');

    if (high === undefined) return low ? [counted(facts.atLeast(print(low)), low, unit)] : [];
    if (low === undefined) return [counted(facts.atMost(print(high)), high, unit)];
    return [counted(low === high ? facts.exactly(print(low)) : facts.between(print(low), print(high)), high, unit)];
}

const values = (label, list) => [label, ' ', list.flatMap((each, i) => [i ? ', ' : '', h('code', null, String(each))])];

// Each fact is a list of nodes.
function constraintsOf({minLength, maxLength, minimum, maximum, minItems, maxItems, uniqueItems, ...schema}) {
    const numbers = [
        ...range(minLength, maxLength, facts.units.characters),
        ...range(minimum, maximum, facts.units.none),
        ...range(minItems, maxItems, facts.units.items),
        ...(uniqueItems ? [facts.unique] : []),
    ].map((fact) => [fact]);

    if (schema.enum) numbers.push(values(facts.oneOf, schema.enum));
    if (schema.const !== undefined) numbers.push(values(facts.always, [schema.const]));
    if (schema.default !== undefined) numbers.push(values(facts.usual, [schema.default]));
    if (schema['x-must']) numbers.push([facts.must(schema['x-must'])]);
    else if (schema.pattern) numbers.push(values(facts.pattern, [schema.pattern]));
    return numbers;
}

// Of a list, what its items must be.
function allConstraints(description, schema) {
    const own = constraintsOf(schema);

    return schema.type === 'array' ? [...own, ...constraintsOf(description.schema(schema.items))] : own;
}

function rowOf(context, name, value, isRequired, depth) {
    const {description, codes} = context;
    const schema = description.schema(value);
    const constraints = allConstraints(description, schema);

    return h(
        'li',
        {class: 'row'},
        h(
            'div',
            {class: 'row-head'},
            h('code', {class: 'row-name'}, name),
            h('span', {class: 'row-type'}, typeOf(description, schema)),
            isRequired && h('span', {class: 'row-required'}, TEXTS.required),
        ),
        markdown(schema.description, codes),
        constraints.length > 0 && h('ul', {class: 'facts'}, constraints.map((fact) => h('li', null, fact))),
        membersOf(context, name, schema, depth + 1),
    );
}

const DEPTH_MAX = 6;

// The rows of the members of an object, or of a list's items; nothing if there are none.
function membersOf(context, name, value, depth) {
    const schema = context.description.schema(value);
    const {type, items, oneOf} = schema;

    if (depth > DEPTH_MAX) return null;
    if (oneOf) return oneOf.map((each) => membersOf(context, name, each, depth));
    if (type === 'array') return membersOf(context, name, items, depth);
    if (!schema.properties) return null;
    const rows = rowsOf(context, schema, depth);

    return h('details', {class: 'members', open: depth === 0}, h('summary', null, TEXTS.members(name)), rows);
}

export function rowsOf(context, value, depth = 0) {
    const schema = context.description.schema(value);

    if (schema.oneOf) return schema.oneOf.map((each) => rowsOf(context, each, depth));
    if (schema.type === 'array') return rowsOf(context, schema.items, depth);
    return h(
        'ul',
        {class: 'rows'},
        Object.entries(schema.properties ?? {}).map(([name, each]) =>
            rowOf(context, name, each, schema.required?.includes(name), depth),
        ),
    );
}

export const parameterRows = (context, parameters) =>
    h(
        'ul',
        {class: 'rows'},
        parameters.map(({name, description, schema, required}) =>
            rowOf(context, name, description ? {...context.description.schema(schema), description} : schema, required, 0),
        ),
    );

// Examples

const TOKENS = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(\$[A-Z_]+\b)|\b(await|const|new|import|with|as|func|package|if|nil|defer|return|curl|true|false|null|None|True|False)\b/g;

function coloured(text) {
    const parts = [];
    let end = 0;

    for (const match of text.matchAll(TOKENS)) {
        const kind = match[1] ? 'string' : match[2] ? 'variable' : 'keyword';

        parts.push(text.slice(end, match.index), h('span', {class: kind}, match[0]));
        end = match.index + match[0].length;
    }
    return [...parts, text.slice(end)];
}

const shown = []; // functions that show the chosen language in all examples
let language = LANGUAGES[0][0];

// Stays where it is in the window although examples above it change their height.
function choose(name, button) {
    const before = button.getBoundingClientRect().top;

    language = name;
    for (const update of shown) update();
    scrollBy({top: button.getBoundingClientRect().top - before, behavior: 'instant'});
}

export function codeBlock(text, label) {
    return h('pre', {tabindex: 0, role: 'group', 'aria-label': label}, h('code', null, coloured(text)));
}

// name: what it is an example of.
export function example(request, name) {
    const place = h('div', {class: 'example-code'});
    const copy = h('span', null);
    const buttons = LANGUAGES.map(([id, label]) =>
        newButton('language', (event) => choose(id, event.currentTarget), label, {'data-language': id}),
    );

    function update() {
        const [id, label, write] = LANGUAGES.find(([each]) => each === language);
        const text = write(request);

        show(place, codeBlock(text, `${label}: ${name}`));
        show(copy, copyButton(text, TEXTS.copyExample, 'copy'));
        for (const button of buttons) button.setAttribute('aria-pressed', button.dataset.language === id);
    }
    shown.push(update);
    update();
    return h(
        'div',
        {class: 'example'},
        h('div', {class: 'example-head'}, h('div', {class: 'languages', role: 'group', 'aria-label': TEXTS.languages}, buttons), copy),
        place,
    );
}
