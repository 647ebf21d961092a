// The texts of the system page.
import {plural} from './texts.js';

const nodes = (n) => `${n} ${plural(n, 'node', 'nodes')}`;

export const SYSTEM = {
    title: 'System',
    lead: 'Whether revoked keys are refused everywhere, as the service measures it itself.',

    how: (every) =>
        `Every ${every} the service revokes a test key of its own, and each of its nodes must refuse it as soon as the revocation has been answered.`,
    minutes: (n) => (n === 1 ? 'minute' : `${n} minutes`),
    seconds: (n) => (n === 1 ? 'second' : `${n} seconds`),

    good: (n) => `The last revocation held on ${n === 1 ? 'the only node' : `all ${nodes(n)}`}.`,
    some: (refused, silent) => `The last revocation held on ${nodes(refused)}. ${nodes(silent)} did not answer.`,
    bad: (n) => `${nodes(n)} accepted a revoked key in the last run.`,
    before: 'A node once accepted a revoked key.',
    tell: 'Tell whoever runs this service.',
    late: 'The last run is long ago: nobody measures at present whether revocations hold.',
    none: 'No run has finished yet.',
    off: 'The service does not measure this: it was turned off.',

    lastRun: 'Last run',
    effect: 'Took effect after',
    milliseconds: (us) => `${us < 10000 ? (us / 1000).toFixed(1) : Math.round(us / 1000)}\u00a0ms`,
    asked: 'Nodes that were asked',
    refused: 'refused',
    accepted: 'accepted',
    silent: 'did not answer',
    violations: 'Violations, ever',
    lastViolation: 'last one',
    runs: 'Runs',
    unfinished: (n) => (n === 0 ? '' : `, and ${n} that could not be finished`),
};
