// The server's time. This computer's clock may be wrong: every answer tells by how much.

let skewMs = 0; // this clock is ahead of the server's by that

export function observe(dateMs) {
    if (Number.isFinite(dateMs)) skewMs = Date.now() - dateMs;
}

export const clockSkewMs = () => skewMs;
export const serverNow = () => Date.now() - skewMs;
