// Asks, and judges what is asked and answered as it goes by; keeps it for the mutants.
import {send, sendBytes} from './requests.js';

export class Conversation {
    /** Requests and answers that kept the contract, in order. */
    exchanges = [];
    /** Sentences of what did not. */
    faults = [];
    #contract;
    #places;

    /** places: base addresses; direct: the node; strict and lenient: Prism in front of it. */
    constructor(contract, places) {
        this.#contract = contract;
        this.#places = places;
    }

    /** A request that keeps the contract, through the strict proxy; the answer must have that status and error code. */
    right(title, request, status, code) {
        return this.#ask(title, 'strict', request, status, code, false);
    }

    /** A request that breaks the contract: the document must say so as well as the node, which gets it all the same. */
    wrong(title, request, status, code) {
        return this.#ask(title, 'lenient', request, status, code, true);
    }

    /** The same where the proxy cannot read or pass on what was sent. */
    wrongDirectly(title, request, status, code) {
        return this.#ask(title, 'direct', request, status, code, true);
    }

    /** A request that keeps the contract, past the proxy. */
    direct(title, request, status, code) {
        return this.#ask(title, 'direct', request, status, code, false);
    }

    /** Of which the document says nothing, or says it in words alone. */
    other(title, request, status, code) {
        return this.#ask(title, 'direct', request, status, code, undefined);
    }

    /** Through the strict proxy, with one of two outcomes: [status, code] each. */
    async either(title, request, first, second) {
        const answer = await send(this.#places.strict, request);
        const isSecond =
            answer.status === second[0] && (first[0] !== second[0] || answer.json?.error === second[1]);
        this.#judge(title, request, answer, ...(isSecond ? second : first));
        return {answer, isSecond};
    }

    async bytes(title, request, bytes, status, code) {
        this.#judge(title, request, await sendBytes(this.#places.direct, bytes), status, code);
    }

    async #ask(title, place, request, status, code, shouldBeWrong) {
        const answer = await send(this.#places[place], request);
        const complaints = shouldBeWrong === undefined ? [] : this.#contract.judgeRequest(request);
        if (shouldBeWrong === false && complaints.length)
            this.#fault(title, `the document refuses the request: ${complaints.join('; ')}`);
        if (shouldBeWrong === true && !complaints.length)
            this.#fault(title, 'the document does not refuse the request');
        const broken = (answer.headers['sl-violations'] ?? '').match(/"location":\["response[^\]]*\][^}]*/g);
        if (broken) this.#fault(title, `Prism: ${broken.join('; ')}`);
        this.#judge(title, request, answer, status, code);
        return answer;
    }

    #judge(title, request, answer, status, code) {
        if (answer.status !== status) this.#fault(title, `answered ${answer.status}, not ${status}: ${answer.body}`);
        else if (code && (answer.json?.error?.code ?? answer.json?.error) !== code)
            this.#fault(title, `answered ${answer.body}, not ${code}`);
        for (const sentence of this.#contract.judgeAnswer(request, answer)) this.#fault(title, sentence);
        this.exchanges.push({request, answer});
    }

    #fault(title, sentence) {
        this.faults.push(`${title}: ${sentence}`);
    }
}
