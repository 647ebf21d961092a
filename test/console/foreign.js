// What others chose, such as names and emails, stands on pages in a <bdi> of its own, and turns nothing around it. Looked
// at in each test that opens a page: what answers of the API hold is known, and so is what pages write.

// Of answers: these fields hold what people or their browsers chose.
export const FOREIGN_FIELDS = [
    'account_name',
    'actor_name',
    'browser',
    'device_name',
    'email',
    'name',
    'target_name',
    'user_agent',
];

// Runs in the page, before its own scripts. Complains on the console.
export function watchForeignText(fields) {
    const TELLING = /[ @]/; // a single word may be one of the page, too
    const ATTRIBUTES = ['title', 'aria-label', 'aria-description', 'alt', 'placeholder', 'label'];
    const ISOLATED = /\u2068[^\u202a-\u202e\u2066-\u2069]*\u2069/g;
    const TURNING = /[\u202a-\u202e\u2066-\u2069]/;
    const known = new Set();
    const complaints = new Set();
    const {json} = Response.prototype;

    function learn(value, name) {
        if (typeof value === 'string') {
            if (fields.includes(name) && TELLING.test(value)) known.add(value);
        } else if (value && typeof value === 'object') {
            for (const [key, each] of Object.entries(value)) learn(each, Array.isArray(value) ? name : key);
        }
    }
    function complain(what, text) {
        const complaint = `foreign text: ${what}: ${JSON.stringify(text.slice(0, 200))}`;

        if (!complaints.has(complaint)) console.error(complaint);
        complaints.add(complaint);
    }
    function judgeWords(what, text) {
        if (TURNING.test(text.replaceAll(ISOLATED, ''))) complain(`${what} turns what stands around it`, text);
    }
    function judgeText(node) {
        const text = node.data;
        const parent = node.parentElement;

        if (!parent || parent.closest('script, style, textarea')) return;
        judgeWords('text', text);
        if (parent.closest('bdi, pre, #announcer') || parent.closest('title')) return;
        for (const each of known) if (text.includes(each)) complain('outside of <bdi>', text);
    }
    function judge(node) {
        if (node.nodeType === Node.TEXT_NODE) judgeText(node);
        if (node.nodeType !== Node.ELEMENT_NODE) return;
        for (const name of ATTRIBUTES) if (node.hasAttribute(name)) judgeWords(name, node.getAttribute(name));
        for (const child of node.childNodes) judge(child);
    }
    function judgeTitle() {
        for (const each of known) if (document.title.includes(each)) complain('in the page’s title', document.title);
    }

    Response.prototype.json = async function () {
        const answer = await json.call(this);

        if (new URL(this.url).pathname !== '/openapi.json') learn(answer, ''); // which is ours
        return answer;
    };
    new MutationObserver((records) => {
        for (const {target, type, addedNodes} of records) {
            if (type !== 'childList') judge(target);
            for (const node of addedNodes) judge(node);
        }
        judgeTitle();
    }).observe(document, {
        attributes: true,
        attributeFilter: ATTRIBUTES,
        characterData: true,
        childList: true,
        subtree: true,
    });
}
