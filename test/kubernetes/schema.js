// Holds objects to the schemas of Kubernetes and of the custom resources: values by their JSON schema, names of fields by
// their types. The schemas let unknown fields pass, which the API server drops; TypeScript tells them.
export const OLDEST = 'kubernetes-1.27';
export const NEWEST = 'kubernetes-1.36';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const PACKAGES = [
    [/^(v1|apps|autoscaling|policy|batch|networking\.k8s\.io|rbac\.authorization\.k8s\.io)(\/|$)/, undefined],
    [/^gateway\.networking\.k8s\.io\//, '@kubernetes-models/gateway-api'],
    [/^cert-manager\.io\//, '@kubernetes-models/cert-manager'],
    [/^gateway\.envoyproxy\.io\//, '@kubernetes-models/envoy-gateway'],
    [/^traefik\.io\//, '@kubernetes-models/traefik'],
    [/^monitoring\.coreos\.com\//, '@kubernetes-models/prometheus-operator'],
    [/\.istio\.io\//, '@kubernetes-models/istio'],
];

function moduleOf({ apiVersion, kind }, kubernetes) {
    const found = PACKAGES.find(([pattern]) => pattern.test(apiVersion));
    if (!found) throw new Error(`no schema for ${apiVersion} ${kind}`);
    return `${found[1] ?? kubernetes}/${apiVersion}/${kind}`;
}

async function wrongValues(object, kubernetes) {
    const { [object.kind]: Model } = await import(moduleOf(object, kubernetes));
    try {
        new Model(object).validate();
        return [];
    } catch (error) {
        return [error.message];
    }
}

/** The folder is here, beside node_modules, because TypeScript looks for packages upwards. */
function wrongFields(objects, kubernetes) {
    const folder = mkdtempSync(join(process.cwd(), 'types.'));
    try {
        const file = join(folder, 'objects.ts');
        const lines = objects.flatMap((object, index) => [
            `import type { I${object.kind} as T${index} } from '${moduleOf(object, kubernetes)}';`,
            `export const object${index}: T${index} = ${JSON.stringify(object)};`,
        ]);
        writeFileSync(file, lines.join('\n'));
        writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
        const program = ts.createProgram([file], {
            ...{ noEmit: true, strict: true, skipLibCheck: true, types: [] },
            ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022 },
        });
        return ts.getPreEmitDiagnostics(program).map((each) => {
            const line = each.file ? Math.floor(each.file.getLineAndCharacterOfPosition(each.start).line / 2) : 0;
            return `${objects[line].kind}: ${ts.flattenDiagnosticMessageText(each.messageText, ' ')}`;
        });
    } finally {
        rmSync(folder, { recursive: true });
    }
}

/** One sentence for each thing that is wrong with the objects. */
export async function wrongs(objects, kubernetes = NEWEST) {
    const values = await Promise.all(
        objects.map(async (object) =>
            (await wrongValues(object, kubernetes)).map((message) => `${object.kind}: ${message}`),
        ),
    );
    return [...values.flat(), ...wrongFields(objects, kubernetes)];
}
