// One section for each operation of the description: what it takes and answers on the left, examples on the right.
import {requestOf} from './docs_examples.js';
import {bodies, isError} from './docs_model.js';
import {codeBlock, example, inline, markdown, parameterRows, rowsOf, sentence} from './docs_parts.js';
import {TEXTS} from './docs_texts.js';
import {h, show} from './dom.js';

const verb = (method) => h('span', {class: `verb ${method.toLowerCase()}`}, method);

// A credential of each kind that is needed; scopes are those of an API key.
function needs({security = []}) {
    const [first = {}] = security;
    const schemes = Object.entries(first);

    if (schemes.length === 0) return TEXTS.needs.nobody;
    return schemes.map(([name, scopes]) =>
        name === 'api_key' ? TEXTS.needs.api_key(scopes.map((scope) => h('code', null, scope))) : TEXTS.needs[name],
    );
}

function parameters(context, operation) {
    return Object.entries(TEXTS.parameters).map(([where, title]) => {
        const some = operation.parameters.filter((parameter) => parameter.in === where);

        return some.length > 0 && [h('h4', null, title), parameterRows(context, some)];
    });
}

function requestBody(context, {requestBody: body}) {
    if (!body) return null;
    return bodies(body).map(({type, schema}) => [
        h('h4', null, TEXTS.body(type)),
        markdown(body.description, context.codes),
        rowsOf(context, schema),
    ]);
}

function answer(context, response) {
    const rows = bodies(response).map(({type, schema}) => {
        const body = context.description.schema(schema);

        return type.includes('json') && (body.properties || body.oneOf) ? rowsOf(context, schema) : null;
    });
    const [body] = bodies(response);

    return [
        h('p', {class: 'status-line'}, h('span', {class: 'status good'}, response.status), h('span', null, inline(response.description, context.codes))),
        body ? rows : h('p', {class: 'hint'}, TEXTS.noBody),
    ];
}

function errorRow({codes}, row) {
    return h(
        'li',
        null,
        h(
            'div',
            {class: 'row-head'},
            h('a', {href: codes.get(row.code)}, h('code', null, row.code)),
            h('span', {class: 'status'}, row.status),
        ),
        h('p', null, sentence(row.when, codes)),
        h('p', {class: 'remedy'}, h('strong', null, TEXTS.remedy), ' ', sentence(row['what to do'], codes)),
    );
}

// They are made when somebody opens the list: over a thousand rows in all.
function errors(context, {responses}) {
    const {description} = context;
    const names = responses.filter(isError).flatMap((response) => description.codesOf(response));
    const rows = description.codes.filter(({code}) => names.includes(code));
    const list = h('ul', {class: 'errors'});
    const fill = () => list.children.length === 0 && show(list, rows.map((row) => errorRow(context, row)));

    return h('details', {class: 'error-list', ontoggle: fill}, h('summary', null, TEXTS.errorsOf(rows.length)), list);
}

function answerExample(context, {responses}) {
    const response = responses.find((each) => !isError(each) && bodies(each).length > 0);
    const [body] = response ? bodies(response) : [];

    if (!body?.type.includes('json')) return null;
    const text = JSON.stringify(context.description.exampleOf(body), null, 2);

    return h(
        'div',
        {class: 'example'},
        h('div', {class: 'example-head'}, h('span', null, TEXTS.answer), h('span', {class: 'status good'}, response.status)),
        codeBlock(text, TEXTS.answer),
    );
}

function section(context, operation) {
    const {id, method, path, summary, responses} = operation;

    return h(
        'section',
        {class: 'operation', id},
        h(
            'div',
            {class: 'operation-text'},
            h('h3', null, summary, h('a', {class: 'anchor', href: `#${id}`, 'aria-label': TEXTS.copyLink(summary)}, '#')),
            h('p', {class: 'endpoint'}, verb(method), h('code', null, path.split('/').flatMap((part, i) => (i ? ['/', h('wbr'), part] : part)))),
            h('p', {class: 'needs'}, needs(operation)),
            markdown(operation.description, context.codes),
            parameters(context, operation),
            requestBody(context, operation),
            h('h4', null, TEXTS.answers),
            responses.filter((response) => !isError(response)).map((response) => answer(context, response)),
            errors(context, operation),
        ),
        h(
            'div',
            {class: 'operation-examples'},
            example(requestOf(context.description, operation, context.origin), summary),
            answerExample(context, operation),
        ),
    );
}

export function operationSections(context) {
    const {tags, operations} = context.description;

    return tags.map(({name, description}) => [
        h('header', {class: 'tag'}, h('h2', null, name), markdown(description, context.codes)),
        operations.filter(({tag}) => tag === name).map((operation) => section(context, operation)),
    ]);
}

// The quick start names the operation of an example, or tells its request.
export function quickExamples(context, main) {
    const {description, origin} = context;

    for (const place of main.querySelectorAll('[data-operation], [data-request]')) {
        const operation = description.operations.find(({id}) => id === place.dataset.operation);
        const request = operation ? requestOf(description, operation, origin) : JSON.parse(place.dataset.request);

        show(place, example(request, place.dataset.name));
    }
    for (const place of main.querySelectorAll('.origin')) place.textContent = origin;
}
