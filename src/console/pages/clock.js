// The server's time. This computer's clock may be wrong; every response shows by how much.

let skewMs = 0; // how far this clock is ahead of the server's

export function observe(dateMs) {
    if (Number.isFinite(dateMs)) skewMs = Date.now() - dateMs;
}

export const clockSkewMs = () => skewMs;
export const serverNow = () => Date.now() - skewMs;
