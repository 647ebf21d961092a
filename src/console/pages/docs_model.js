// What the description of the API says, without any page: its operations, schemas and codes. No DOM, so tests use it too.

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

// Merges what two schemas say of the same value: members one by one, everything else by the later one.
function merge(one, other) {
    const merged = {...one, ...other};

    if (one.properties && other.properties) {
        merged.properties = {...one.properties};
        for (const [name, schema] of Object.entries(other.properties))
            merged.properties[name] = one.properties[name] ? {allOf: [one.properties[name], schema]} : schema;
    }
    if (one.required && other.required) merged.required = [...new Set([...one.required, ...other.required])];
    return merged;
}

export class Description {
    #document;

    constructor(document) {
        this.#document = document;
        this.info = document.info;
        this.tags = document.tags;
        this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
            METHODS.filter((method) => item[method]).map((method) => this.#operation(method, path, item[method])),
        );
        this.codes = tables(document.info.description).filter(({code}) => code);
    }

    #operation(method, path, operation) {
        return {
            ...operation,
            id: operation.operationId,
            method: method.toUpperCase(),
            path,
            tag: operation.tags[0],
            parameters: (operation.parameters ?? []).map((parameter) => this.resolve(parameter)),
            requestBody: operation.requestBody && this.resolve(operation.requestBody),
            responses: Object.entries(operation.responses).map(([status, response]) => ({
                status,
                ...this.resolve(response),
            })),
        };
    }

    // What stands beside a $ref adds to it.
    resolve(value) {
        if (!value.$ref) return value;
        const {$ref, ...beside} = value;
        const target = $ref
            .slice(2)
            .split('/')
            .reduce((at, name) => at[name], this.#document);

        return {...this.resolve(target), ...beside};
    }

    // A schema without $ref and allOf at its top.
    schema(value) {
        const {allOf = [], ...rest} = this.resolve(value);

        return allOf.map((part) => this.schema(part)).reduceRight((later, part) => merge(part, later), rest);
    }

    // Whose error codes a response may have.
    codesOf(response) {
        return [...new Set(bodies(response).flatMap(({schema}) => this.#codesIn(schema)))];
    }

    #codesIn(value) {
        const {properties = {}, oneOf} = this.schema(value);

        if (oneOf) return oneOf.flatMap((each) => this.#codesIn(each));
        if (!properties.error) return [];
        const error = this.schema(properties.error);
        const code = error.properties ? this.schema(error.properties.code) : error;

        return code.const ? [code.const] : (code.enum ?? []);
    }

    // The first example, or one made from the schema.
    exampleOf({schema, example, examples}) {
        if (example !== undefined) return example;
        const [first] = Object.values(examples ?? {});

        return first ? this.resolve(first).value : this.#sample(schema);
    }

    #sample(value) {
        const {examples, const: only, enum: some, default: usual, type, properties = {}, items} = this.schema(value);
        const [first] = examples ?? (only === undefined ? (some ?? []) : [only]);

        if (first !== undefined) return first;
        if (usual !== undefined) return usual;
        if (type === 'array') return [this.#sample(items)];
        if (type === 'object')
            return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, this.#sample(each)]));
        return {integer: 1, boolean: true}[type] ?? '…';
    }
}

export const bodies = ({content = {}}) => Object.entries(content).map(([type, body]) => ({type, ...body}));

export const isError = ({status}) => status === 'default' || Number(status) >= 400;

export const cells = (line) => line.split('|').slice(1, -1).map((cell) => cell.trim());

// The rows of all tables of a text, by the names of their columns; `code` without its backquotes.
function tables(text) {
    const rows = [];
    let names = [];

    for (const line of text.split('\n')) {
        if (!line.startsWith('|')) names = [];
        else if (names.length === 0) names = cells(line);
        else if (!line.startsWith('|-')) rows.push(Object.fromEntries(cells(line).map((cell, i) => [names[i], cell])));
    }
    return rows.map((row) => ({...row, code: row['what to do'] && row.code.replaceAll('\x60', '')}));
}
