// One request as a program would make it, in four languages. No DOM, so tests run what it makes.
import {bodies} from './docs_model.js';

const KEY = 'CHATELAINE_API_KEY';
const SESSION = 'CHATELAINE_SESSION';
const CSRF = 'CHATELAINE_CSRF_TOKEN';

// Headers are [name, words before the variable, name of the variable or nothing].
function headersOf(operation) {
    const schemes = Object.keys(operation.security?.[0] ?? {});
    const headers = [];

    if (schemes.includes('api_key')) headers.push(['Authorization', 'Bearer ', KEY]);
    if (schemes.includes('session')) headers.push(['Cookie', '__Host-session=', SESSION]);
    if (schemes.includes('csrf')) headers.push(['X-CSRF-Token', '', CSRF]);
    return headers;
}

function targetOf(description, {path, parameters}) {
    const valueOf = (parameter) => encodeURIComponent(description.exampleOf(parameter));
    const query = parameters.filter(({in: where, required}) => where === 'query' && required);
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => valueOf(parameters.find((each) => each.name === name)));

    return filled + query.map((each, i) => `${i ? '&' : '?'}${each.name}=${valueOf(each)}`).join('');
}

// What the operation asks for, as {method, url, headers, type, body}.
export function requestOf(description, operation, origin) {
    const [content] = operation.requestBody ? bodies(operation.requestBody) : [];
    const headers = headersOf(operation);

    if (content) headers.push(['Content-Type', content.type]);
    return {
        method: operation.method,
        url: origin + targetOf(description, operation),
        headers,
        type: content?.type,
        body: content && description.exampleOf(content),
    };
}

const isForm = ({type}) => type === 'application/x-www-form-urlencoded';
const json = (value, indent) => JSON.stringify(value, null, indent);
const indented = (text, blanks) => text.replaceAll('\n', `\n${' '.repeat(blanks)}`);
const shellQuoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function curl({method, url, headers, body, ...request}) {
    const header = ([name, words, variable]) =>
        variable ? `-H "${name}: ${words}$${variable}"` : `-H '${name}: ${words}'`;
    const sent = isForm(request)
        ? Object.entries(body).map(([name, value]) => `--data-urlencode ${shellQuoted(`${name}=${value}`)}`)
        : [body && `-d ${shellQuoted(json(body, 2))}`];
    const named = isForm(request) ? headers.filter(([name]) => name !== 'Content-Type') : headers;
    const verb = method === (body ? 'POST' : 'GET') ? 'curl' : `curl -X ${method}`;

    return [`${verb} '${url}'`, ...named.map(header), ...sent.filter(Boolean)].join(' \\\n  ');
}

function javascript({method, url, headers, body, ...request}) {
    const header = ([name, words, variable]) =>
        `    '${name}': ${variable ? `${words ? `'${words}' + ` : ''}process.env.${variable}` : `'${words}'`},`;
    const sent = isForm(request) ? `new URLSearchParams(${json(body, 2)})` : `JSON.stringify(${json(body, 2)})`;

    return [
        `const response = await fetch('${url}', {`,
        ...(method === 'GET' ? [] : [`  method: '${method}',`]),
        ...(headers.length ? ['  headers: {', ...headers.map(header), '  },'] : []),
        ...(body ? [`  body: ${indented(sent, 2)},`] : []),
        '});',
        '',
        'console.log(response.status, await response.text());',
    ].join('\n');
}

const PYTHON = {true: 'True', false: 'False', null: 'None'};

function pythonValue(value) {
    if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
    if (typeof value !== 'object' || value === null) return PYTHON[value] ?? json(value);
    const rows = Object.entries(value).map(([name, each]) => `    ${json(name)}: ${indented(pythonValue(each), 4)},`);

    return ['{', ...rows, '}'].join('\n');
}

function python({method, url, headers, body, ...request}) {
    const header = ([name, words, variable]) =>
        `        "${name}": ${variable ? `${words ? `"${words}" + ` : ''}os.environ["${variable}"]` : `"${words}"`},`;
    const imports = [
        ...(body && !isForm(request) ? ['json'] : []),
        ...(headers.some(([, , variable]) => variable) ? ['os'] : []),
        ...(isForm(request) ? ['urllib.parse'] : []),
        'urllib.request',
    ];
    const made = isForm(request) ? `urllib.parse.urlencode(${pythonValue(body)})` : `json.dumps(${pythonValue(body)})`;

    return [
        ...imports.map((name) => `import ${name}`),
        '',
        'request = urllib.request.Request(',
        `    "${url}",`,
        `    method="${method}",`,
        ...(headers.length ? ['    headers={', ...headers.map(header), '    },'] : []),
        ...(body ? [`    data=${indented(made, 4)}.encode(),`] : []),
        ')',
        'with urllib.request.urlopen(request) as response:',
        '    print(response.status, response.read().decode())',
    ].join('\n');
}

function goBody({body, ...request}) {
    if (!body) return 'nil';
    if (!isForm(request)) return `strings.NewReader(\x60${json(body, 2)}\x60)`;
    const widest = Math.max(...Object.keys(body).map((name) => json(name).length)); // gofmt aligns values
    const rows = Object.entries(body).map(([name, value]) => `\t\t${`${json(name)}:`.padEnd(widest + 1)} {${json(value)}},`);

    return ['strings.NewReader(url.Values{', ...rows, '\t}.Encode())'].join('\n');
}

function go({method, url, headers, ...request}) {
    const header = ([name, words, variable]) =>
        `\trequest.Header.Set("${name}", ${variable ? `${words ? `"${words}"+` : ''}os.Getenv("${variable}")` : `"${words}"`})`;
    const imports = [
        ...['fmt', 'io', 'log', 'net/http'],
        ...(isForm(request) ? ['net/url'] : []),
        ...(headers.some(([, , variable]) => variable) ? ['os'] : []),
        ...(request.body ? ['strings'] : []),
    ];

    return [
        'package main',
        '',
        'import (',
        ...imports.map((name) => `\t"${name}"`),
        ')',
        '',
        'func main() {',
        `\tbody := ${goBody(request)}`,
        `\trequest, err := http.NewRequest("${method}", "${url}", body)`,
        '\tif err != nil {',
        '\t\tlog.Fatal(err)',
        '\t}',
        ...headers.map(header),
        '\tresponse, err := http.DefaultClient.Do(request)',
        '\tif err != nil {',
        '\t\tlog.Fatal(err)',
        '\t}',
        '\tdefer response.Body.Close()',
        '\tanswer, err := io.ReadAll(response.Body)',
        '\tif err != nil {',
        '\t\tlog.Fatal(err)',
        '\t}',
        '\tfmt.Println(response.StatusCode, string(answer))',
        '}',
    ]
        .join('\n')
        .replace('\tbody := nil\n', '')
        .replace(/, body\)$/m, request.body ? ', body)' : ', nil)');
}

export const LANGUAGES = [
    ['curl', 'curl', curl],
    ['javascript', 'JavaScript', javascript],
    ['python', 'Python', python],
    ['go', 'Go', go],
];
