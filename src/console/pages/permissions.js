// What the signed-in person's role allows. The API decides; the pages only do not offer what it would refuse.
import {currentSession} from './session.js';

const ROLES = ['auditor', 'responder', 'developer', 'owner']; // each may also do what those before it may

// least: the least role that may. Nodes of older versions know only owners.
export const mayAs = (least) => ROLES.indexOf(currentSession()?.user.role ?? 'owner') >= ROLES.indexOf(least);
