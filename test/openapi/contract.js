// Holds what goes over the wire against the document, beside Prism and stricter than it: unknown query parameters, forms,
// the whole of JSON Schema 2020-12, statuses against codes, headers that every answer carries.
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const METHODS = ['get', 'post', 'delete', 'put', 'patch'];
const ALWAYS = {
    'x-content-type-options': /^nosniff$/,
    'referrer-policy': /^no-referrer$/,
    'content-security-policy': /^default-src 'none';.* frame-ancestors 'none'/,
    'strict-transport-security': /^max-age=\d+/,
    'cache-control': /^no-store$/,
};
// A file: kept, and asked for again by its ETag.
const OF_FILES = {...ALWAYS, 'cache-control': /^no-cache$/};

// Of each template of a path: its form, and the names of its parameters.
const templates = new Map();

function templateOf(text) {
    if (!templates.has(text))
        templates.set(text, {
            names: [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
            form: new RegExp(`^${text.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '([^/]+)')}$`),
        });
    return templates.get(text);
}

/** A copy in which a shared response that is another one in other words has a content of its own, to lie about. */
function withoutAliases(document) {
    const {responses} = document.components;
    const own = ([name, response]) => [name, responses[response.$ref?.split('/').at(-1)] ?? response];
    const copies = Object.fromEntries(Object.entries(responses).map(own));
    return {...document, components: {...document.components, responses: copies}};
}

export class Contract {
    #document;
    #ajv;
    #coercing;
    #compiled = new Map();

    /** isVariant: it differs in one place from a document that was found to be valid, and is used for a few answers. */
    constructor(document, {isVariant = false} = {}) {
        const options = {
            ...{strict: true, strictTypes: false, strictRequired: false},
            ...(isVariant && {validateSchema: false, code: {optimize: false}}),
        };

        this.#document = withoutAliases(document);
        this.#ajv = new Ajv2020({...options, allErrors: true, coerceTypes: false});
        this.#coercing = new Ajv2020({...options, coerceTypes: true});
        for (const ajv of [this.#ajv, this.#coercing]) {
            addFormats(ajv);
            ajv.addFormat('password', true);
            // What is for people, and for the node.
            for (const keyword of ['components', 'x-must', 'x-secret']) ajv.addKeyword(keyword);
        }
    }

    #compile(ajv, key) {
        const schema = key.replaceAll('"#/components/', '"document#/components/');
        if (schema !== key && !ajv.schemas.document) {
            const {schemas} = this.#document.components;
            ajv.addSchema({$id: 'document', components: {schemas}}, 'document', true, false);
        }
        return ajv.compile(JSON.parse(schema));
    }

    get document() {
        return this.#document;
    }

    /** "post /v1/api_keys" for every operation. */
    operations() {
        return Object.entries(this.#document.paths).flatMap(([path, item]) =>
            METHODS.filter((method) => item[method]).map((method) => `${method} ${path}`),
        );
    }

    /** [operation, its name, values of the path's parameters]; undefined: not in the document. */
    find(method, target) {
        const path = target.split('?')[0];
        for (const [template, item] of Object.entries(this.#document.paths)) {
            const {names, form} = templateOf(template);
            const match = path.match(form);
            const operation = item[method.toLowerCase()];
            if (match && operation)
                return {
                    operation,
                    name: `${method.toLowerCase()} ${template}`,
                    values: Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(match[i + 1])])),
                };
        }
        return undefined;
    }

    /** An operation, and a request of it made from the document's own examples, without credentials. */
    exampleOf(method, template) {
        const operation = this.#document.paths[template][method];
        const parameters = (operation.parameters ?? [])
            .map((one) => this.#follow(one))
            .filter((one) => one.in === 'path');
        const path = parameters.reduce((text, {name, example}) => text.replace(`{${name}}`, example), template);
        const [type, media] = Object.entries(this.#follow(operation.requestBody)?.content ?? {})[0] ?? [];
        if (!type) return {operation, example: {path}};
        const {value} = Object.values(media.examples)[0];
        const body = type === 'application/json' ? JSON.stringify(value) : new URLSearchParams(value).toString();
        return {operation, example: {path, headers: {'Content-Type': type}, body}};
    }

    /** Whether an operation answers that code under that status. */
    tells(operation, status, code) {
        return JSON.stringify(this.#follow(operation.responses[status])?.content ?? '').includes(`"${code}"`);
    }

    #follow(value) {
        return value?.$ref
            ? value.$ref
                  .slice(2)
                  .split('/')
                  .reduce((at, name) => at[name], this.#document)
            : value;
    }

    #validate(ajv, schema, value, where) {
        const key = JSON.stringify(schema);
        const known = this.#compiled.get(ajv) ?? this.#compiled.set(ajv, new Map()).get(ajv);
        if (!known.has(key)) known.set(key, this.#compile(ajv, key));
        const check = known.get(key);
        return check(value)
            ? []
            : check.errors.map(
                  (error) => `${where}${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`,
              );
    }

    #coerced(schema, text, where) {
        return this.#validate(this.#coercing, {type: 'object', properties: {value: schema}}, {value: text}, where);
    }

    /** What is wrong with a request, by the document: sentences. */
    judgeRequest({method = 'GET', path, headers = {}, body}) {
        const found = this.find(method, path);
        if (!found) return [`${method} ${path} is not in the document`];
        const has = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
        return [
            ...this.#judgeParameters(found, path, has),
            ...this.#judgeCredential(found.operation, has),
            ...this.#judgeBody(found.operation, has, body),
        ];
    }

    #judgeParameters({operation, values}, path, headers) {
        const query = new URL(path, 'http://document').searchParams;
        const known = (operation.parameters ?? []).map((one) => this.#follow(one));
        const wrong = [...query.keys()]
            .filter((name) => !known.some((one) => one.in === 'query' && one.name === name))
            .map((name) => `query: ${name} is not known`);
        for (const {name, in: place, schema, required} of known) {
            const given =
                place === 'query'
                    ? query.getAll(name)
                    : [place === 'path' ? values[name] : headers[name.toLowerCase()]].filter(
                          (one) => one !== undefined,
                      );
            if (given.length > 1) wrong.push(`query: ${name} came twice`);
            if (required && given.length === 0) wrong.push(`${place}: ${name} is missing`);
            if (given.length === 1) wrong.push(...this.#coerced(schema, given[0], `${place}: ${name} `));
        }
        return wrong;
    }

    #judgeCredential(operation, headers) {
        const holds = (name) => {
            const scheme = this.#document.components.securitySchemes[name];
            if (scheme.type === 'http') return /^bearer \S+$/i.test(headers.authorization ?? '');
            if (scheme.in === 'cookie') return (headers.cookie ?? '').includes(`${scheme.name}=`);
            return headers[scheme.name.toLowerCase()] !== undefined;
        };
        const ways = operation.security;
        return ways.length === 0 || ways.some((way) => Object.keys(way).every(holds))
            ? []
            : ['a credential is missing'];
    }

    #judgeBody({requestBody}, headers, body) {
        if (!requestBody) return [];
        const [type, {schema}] = Object.entries(this.#follow(requestBody).content)[0];
        if ((headers['content-type'] ?? '').split(';')[0] !== type) return [`body: not ${type}`];
        try {
            const value = type === 'application/json' ? JSON.parse(body) : formOf(body);
            return this.#validate(this.#ajv, schema, value, 'body: ');
        } catch (error) {
            return [`body: ${error.message}`];
        }
    }

    /** What the document says of answers with that status, and where: a path of names. Of a method that it does not have: what
     * any route can answer; of a path that it does not have: that errors are errors. */
    #responseTo(method, path, status) {
        const found = this.find(method === 'HEAD' ? 'GET' : method, path);
        const {headers, responses} = this.#document.components;
        if (found) {
            const [verb, template] = found.name.split(' ');
            const key = found.operation.responses[status] ? String(status) : 'default';
            return {response: found.operation.responses[key], place: ['paths', template, verb, 'responses', key]};
        }
        if (METHODS.some((other) => this.find(other, path)))
            return {response: responses.Other, place: ['components', 'responses', 'Other']};
        const any = {
            'X-Request-Id': headers.RequestId,
            'WWW-Authenticate': {schema: {type: 'string'}},
            'Allow': headers.Allow,
        };
        return {
            response: {headers: any, content: {'application/json': {schema: {$ref: '#/components/schemas/Error'}}}},
            place: [],
        };
    }

    /** The parts of the document that an answer is held against. */
    partsOf({method = 'GET', path}, {status}) {
        const {response, place} = this.#responseTo(method, path, status);
        const parts = new Set([place.join(' ')]);
        const visit = (value) => {
            if (value === null || typeof value !== 'object') return;
            const part = value.$ref?.slice(2).split('/').join(' ');
            if (part && !parts.has(part)) {
                parts.add(part);
                visit(this.#follow(value));
            }
            Object.values(value).forEach(visit);
        };
        visit(response);
        return parts;
    }

    /** Keys by their schema; a certificate by its form. A file: its first line is that of the example (CSV), or each of its lines is an event (NDJSON). */
    #judgeText(content, type, body) {
        if (type === 'application/jwk-set+json')
            return this.#validate(this.#ajv, content.schema, JSON.parse(body), 'answer: ');
        if (type === 'application/jose')
            return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(body) ? [] : [`not a JWS in compact form: ${body}`];
        if (type === 'text/csv')
            return body.split('\r\n')[0] === content.example.split('\r\n')[0] ? [] : [`the columns are ${body}`];
        const event = this.#document.components.schemas.AuditEventPage.properties.data.items;
        return body
            .split('\n')
            .slice(0, -1)
            .flatMap((line) => this.#validate(this.#ajv, event, JSON.parse(line), 'a line: '));
    }

    /** What is wrong with an answer, by the document: sentences. */
    judgeAnswer({method = 'GET', path}, {status, headers, body, json}) {
        const response = this.#follow(this.#responseTo(method, path, status).response);
        const wrong = Object.entries(path === '/openapi.json' ? OF_FILES : ALWAYS)
            .filter(([name, form]) => !form.test(headers[name] ?? ''))
            .map(([name]) => `headers: ${name}: ${headers[name]}`);
        wrong.push(...this.#judgeHeaders(response, headers, status));
        if (!response.content) return body === '' ? wrong : [...wrong, 'a body where none belongs'];
        if (method === 'HEAD') return wrong;
        const type = (headers['content-type'] ?? '').split(';')[0];
        if (type !== 'application/json' && response.content[type])
            return [...wrong, ...this.#judgeText(response.content[type], type, body)];
        if (headers['content-type'] !== 'application/json' || json === undefined)
            return [...wrong, `the type is ${headers['content-type']}`];
        wrong.push(...this.#validate(this.#ajv, response.content['application/json'].schema, json, 'answer: '));
        if (json.error?.code && this.statusOf(json.error.code) !== status)
            wrong.push(`${json.error.code} came with status ${status}`);
        if (json.error?.request_id && json.error.request_id !== headers['x-request-id'])
            wrong.push('request_id is not X-Request-Id');
        return wrong;
    }

    #judgeHeaders(response, headers, status) {
        const wrong = [];
        for (const [name, header] of Object.entries(response.headers ?? {})) {
            const {schema, required} = this.#follow(header);
            const value = [headers[name.toLowerCase()]].flat()[0];
            if (required && value === undefined) wrong.push(`headers: ${name} is missing`);
            if (value !== undefined) wrong.push(...this.#coerced(schema, value, `headers: ${name} `));
        }
        if ((status === 405) !== (headers.allow !== undefined)) wrong.push('headers: Allow belongs to 405');
        for (const name of ['www-authenticate', 'retry-after', 'location', 'set-cookie', 'allow'])
            if (
                headers[name] !== undefined &&
                !Object.keys(response.headers ?? {}).some((known) => known.toLowerCase() === name)
            )
                wrong.push(`headers: ${name} is not in the document`);
        return wrong;
    }

    /** By the table of errors in the document's own words. */
    statusOf(code) {
        const row = this.#document.info.description.match(new RegExp(`^\\| (\\d{3}) \\| \`${code}\` \\|`, 'm'));
        return row ? Number(row[1]) : undefined;
    }
}

/** Parameters of a form; one that came twice is an error. */
function formOf(body) {
    const form = new URLSearchParams(body);
    const names = [...form.keys()];
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice) throw new Error(`${twice} came twice`);
    return Object.fromEntries(form);
}
