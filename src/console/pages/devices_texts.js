// The texts of the devices’ pages.

export const DEVICES = {
    title: 'Devices',
    lead: 'Desktop agents that upload documents for your clinic. A device can do nothing else.',
    add: 'Add a device',
    activity: 'Its activity',
    columns: {name: 'Device', created: 'Added', lastUsed: 'Last used', actions: 'Actions'},
    table: 'Devices',
    unnamed: 'Unnamed device',
    emptyTitle: 'No devices yet',
    empty: 'Start the agent on the computer that will upload documents. It shows a code of eight letters: enter it here.',
    revokeTitle: 'Revoke this device?',
    revokeText: 'The agent on it stops uploading at once. To use it again, add it again.',
    revokeSubmit: 'Revoke device',
    revokedTitle: 'Revoked, everywhere',
    revokedText: 'No node accepts this device’s key any more.',
};

export const ACTIVATE = {
    title: 'Add a device',
    lead: 'The agent on the device shows a code of eight letters.',
    code: 'Code shown on the device',
    codeHint: 'Eight letters, like BCDF-GHJK',
    codeMissing: 'Enter the eight letters that the device shows.',
    look: 'Continue',
    looking: 'Looking it up…',
    unknown:
        'No device is waiting with this code. Codes are valid for ten minutes and work once: check the device again, or restart the agent.',
    confirm: 'Approve this device?',
    compare: 'Is this the code on the device in front of you?',
    warning:
        'Continue only if you, or somebody you can see, started the agent just now. Anyone who sends you a code or a link by mail or phone may be ' +
        'trying to get in.',
    mayDeny: 'Your role lets you deny this device. A developer or an owner can approve it.',
    mayLook: 'A developer or an owner can approve or deny this device.',
    device: 'Device',
    asks: 'Will be able to',
    asksText: 'Upload documents in live mode. Nothing else.',
    from: 'Request from',
    at: 'Requested',
    expires: 'Valid until',
    approve: 'Approve',
    approving: 'Approving…',
    deny: 'Deny',
    denying: 'Denying…',
    approvedTitle: 'Device approved',
    approved: 'It fetches its key within a few seconds and then appears in the list of devices.',
    deniedTitle: 'Device denied',
    denied: 'The device gets no key. If you did not expect this request, tell your administrator.',
    toDevices: 'Go to the devices',
    another: 'Add another device',
};
