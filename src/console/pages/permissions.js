// What the signed-in person's role allows. The API decides; the pages only do not offer what it would refuse.
import {ROLES} from './roles.js';
import {currentSession} from './session.js';

const ORDER = Object.keys(ROLES); // each may also do what those before it may

// least: the least role that may.
export const mayAs = (least) => ORDER.indexOf(currentSession()?.user.role) >= ORDER.indexOf(least);

const OWNERS_SCOPES = ['team:manage', 'org:manage'];

// Nobody makes a key that may do more than the role: whether keys with this scope may be made.
export const mayGrant = (scope) => mayAs(OWNERS_SCOPES.includes(scope) ? 'owner' : 'developer');
