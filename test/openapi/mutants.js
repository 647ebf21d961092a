// Documents that tell one lie each. A lie that no recorded answer shows to be one is a part of the document that nothing
// tests. Each mutant: [what it lies about, path of the changed place, how].

const NEVER = '^nothing is like this$';
const at = (document, path) => path.reduce((value, name) => value[name], document);

/** A copy with one place changed; it shares the rest with the document. */
export function mutate(document, [, path, change]) {
    const copyAlong = (value, [name, ...rest]) => {
        if (rest.length === 0) return structuredClone(value);
        const copy = Array.isArray(value) ? [...value] : {...value};
        copy[name] = copyAlong(value[name], rest);
        return copy;
    };
    const copy = copyAlong(document, path);
    change(at(copy, path.slice(0, -1)), path.at(-1));
    return copy;
}

/** The part of the document that is changed, as Contract.partsOf() names it. */
export const partOf = ([, path]) => path.slice(0, path[0] === 'components' ? 3 : 5).join(' ');

const drop = (parent, name) => {
    if (Array.isArray(parent)) parent.splice(name, 1);
    else delete parent[name];
};
const put = (value) => (parent, name) => {
    parent[name] = value;
};

/** The names of the schemas that answers consist of. */
function answered(document) {
    const names = new Set();
    const visit = (value) => {
        if (value === null || typeof value !== 'object') return;
        const name = value.$ref?.match(/^#\/components\/(\w+)\/(\w+)$/);
        if (name?.[1] === 'schemas')
            names.has(name[2]) || (names.add(name[2]) && visit(document.components.schemas[name[2]]));
        else if (name) visit(document.components[name[1]][name[2]]);
        Object.values(value).forEach(visit);
    };
    for (const item of Object.values(document.paths))
        for (const operation of Object.values(item)) visit(operation.responses);
    return [...names];
}

function* ofObject(path, schema) {
    for (const [name, property] of Object.entries(schema.properties)) {
        const here = [...path, 'properties', name];
        yield [`${here.join('.')} is not listed`, here, drop];
        yield [
            `${here.join('.')} has another type`,
            here,
            put(property.type === 'boolean' ? {type: 'integer'} : {type: 'boolean'}),
        ];
        if (property.properties) yield* ofObject(here, property);
    }
    yield [`${path.join('.')} has one more`, [...path, 'required'], (parent) => parent.required.push('no_such_member')];
}

function* ofSchemas(document) {
    for (const name of answered(document)) {
        const path = ['components', 'schemas', name];
        const schema = at(document, path);
        if (schema.properties && schema.additionalProperties === false) yield* ofObject(path, schema);
        for (const i of (schema.enum ?? []).keys())
            yield [`${name} is never ${schema.enum[i]}`, [...path, 'enum', i], drop];
        if (schema.pattern) yield [`${name} has another form`, [...path, 'pattern'], put(NEVER)];
    }
}

/** Each code of each list of errors, in the shared responses and in those of single operations. */
function* ofCodes(where, path, value) {
    if (value === null || typeof value !== 'object') return;
    for (const member of ['code', 'error']) {
        const listed = value.properties?.[member];
        for (const i of (listed?.enum ?? []).keys())
            yield [`${where} is never ${listed.enum[i]}`, [...path, 'properties', member, 'enum', i], drop];
        if (listed?.const)
            yield [
                `${where} is never ${listed.const}`,
                [...path, 'properties', member, 'const'],
                put('something_else'),
            ];
    }
    for (const [name, inner] of Object.entries(value)) yield* ofCodes(where, [...path, name], inner);
}

function* ofResponses(document) {
    for (const [name, response] of Object.entries(document.components.responses))
        yield* ofCodes(name, ['components', 'responses', name, 'content'], response.content);
    for (const [path, item] of Object.entries(document.paths))
        for (const [method, operation] of Object.entries(item))
            for (const [status, response] of Object.entries(operation.responses)) {
                const here = ['paths', path, method, 'responses', status];
                const where = `${method} ${path} ${status}`;
                if (status !== '503' && status !== 'default')
                    yield [
                        `${where} is another answer`,
                        here,
                        put({description: '', headers: {'X-No-Such': {required: true, schema: {type: 'string'}}}}),
                    ];
                if (!response.$ref) yield* ofCodes(where, here, response);
            }
}

function* ofHeaders(document) {
    for (const name of Object.keys(document.components.headers))
        yield [
            `the header ${name} has another form`,
            ['components', 'headers', name, 'schema'],
            put({type: 'string', pattern: NEVER}),
        ];
}

export function* mutants(document) {
    yield* ofSchemas(document);
    yield* ofResponses(document);
    yield* ofHeaders(document);
}
