/** What a gate is about, in words: as operators know it. Pure. */
import { ofWhom } from '../../limits/limit-names.ts';
import { isOfConversation } from '../in-conversation/conversation-gates.ts';
import { waitingFor } from './gates.ts';

/** The skill, organization, agent or API key that has a limit or a pause. */
export interface GateSubject {
  readonly type: 'skill' | 'organization' | 'agent' | 'api_key';
  readonly id: string;
  /** Null of a skill, and where it is not known. */
  readonly organizationId: string | null;
}

const ofSkill = /^(?:concurrency|rate|pause|pause after a refusal) of ([^/\s]+\/[^/\s]+\/[^/\s]+)/;

/** A limit of a skill counts for many users, keys or organizations, and there are many conversations: as a reason it is one. */
export function limitNameOf(gate: string): string {
  return ofSkill.test(gate) || isOfConversation(gate) ? waitingFor(gate) : gate;
}

/** Whose limit or pause it is, null of an unknown one; `limit` is by `limitNameOf`. */
export function subjectOf(limit: string): GateSubject | null {
  const skill = ofSkill.exec(limit)?.[1];
  if (skill !== undefined) return { type: 'skill', id: skill, organizationId: null };
  const [words = '', whose] = limit.split(ofWhom, 2);
  if (whose === undefined) return null;
  if (words.endsWith(' of organization')) {
    return { type: 'organization', id: whose, organizationId: whose };
  }
  if (words.endsWith(' of API key')) return { type: 'api_key', id: whose, organizationId: null };
  const [organizationId = '', id = ''] = whose.split(' ', 2);
  return { type: 'agent', id, organizationId };
}

/** A gate without the id of the API key that it limits, unless it is `keyId`. */
export function withoutOtherKeys(gate: string, keyId: string): string {
  const subject = subjectOf(gate);
  return subject?.type === 'api_key' && subject.id !== keyId ? waitingFor(gate) : gate;
}

/** The limit or pause with whose it is, such as `pause of organization acme`. */
export function limitInWords(limit: string): string {
  const subject = subjectOf(limit);
  if (subject === null || subject.type === 'skill') return limit;
  const of = subject.type === 'agent' ? ` of ${subject.organizationId}` : '';
  return `${waitingFor(limit)} ${subject.id}${of}`;
}
