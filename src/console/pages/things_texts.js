// What kinds of things there are, and what those are called who have no name.

export const THINGS = {
    kinds: {
        person: 'Person',
        key: 'API key',
        device: 'Device',
        command: 'Command line',
        service: 'Service',
        stranger: 'Unknown',
    },
    you: 'You',
    operator: 'Operator, command line',
    system: 'The service',
    holder: 'Somebody with the key',
};
