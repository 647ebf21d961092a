// The server's time, and counting down. This computer's clock may be wrong; every response shows by how much.

let skewMs = 0; // how far this clock is ahead of the server's

export function observe(dateMs) {
    if (Number.isFinite(dateMs)) skewMs = Date.now() - dateMs;
}

export const clockSkewMs = () => skewMs;
export const serverNow = () => Date.now() - skewMs;

const TICK_MS = 250;

// Calls tick(milliseconds left) now and again until the end, then over(). endMs is by this computer's clock. Returns a
// function that stops it.
export function countDown(endMs, tick, over) {
    let timer = 0;
    const run = () => {
        const leftMs = endMs - Date.now();

        if (leftMs <= 0) {
            over();
            return;
        }
        tick(leftMs);
        timer = setTimeout(run, TICK_MS);
    };

    run();
    return () => clearTimeout(timer);
}
