/**
 * What calls of models are sent, kept by setting: in the transaction in which the step of the call begins, so that each
 * step that is on record has its prompt, or says why not. Never keeps credentials, which are in the head of a request, nor
 * the bytes of files.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { Json } from '../../../kernel/json.ts';
import type { OpenClaim } from '../claim-writes.ts';
import { KnownPrompts, recallPrompt, rememberPrompt, writePrompt } from './prompt-form.ts';
import type { PromptSettings } from './prompt-settings.ts';
import { findPromptBefore, insertPrompt, takeBytes } from './prompts.store.ts';
import { readerOf } from './read-prompts.ts';

/** UTF-8 bytes that a prompt may have to be kept. */
const promptBytesMax = 4 * 1024 * 1024;
/** So long a claim relies on what it has kept: texts are removed a day after the last prompt of their job at the earliest. */
const reliesMs = 6 * 60 * 60 * 1000;

/** A call of a model that begins. */
interface BeginningCall {
  readonly n: number;
  readonly generation: string;
  /** 0 for a summary. */
  readonly turn: number;
}

/** The prompts of one claim of a job. */
export class KeptPrompts {
  readonly #claim: OpenClaim;
  readonly #settings: PromptSettings;
  #known = new KnownPrompts();
  #knownSince: number;
  /** The dialogues whose earlier prompts have been read; null where there can be none. */
  #read: Set<string> | null;

  constructor(claim: OpenClaim, settings: PromptSettings) {
    this.#claim = claim;
    this.#settings = settings;
    this.#knownSince = claim.clock.now();
    this.#read = claim.job.epoch === 1 ? null : new Set();
  }

  /** Reads what was kept of a dialogue before, so that it is not kept again. */
  async prepare({ generation, turn }: Omit<BeginningCall, 'n'>): Promise<void> {
    const { job, clock, database } = this.#claim;
    const now = clock.now();
    if (now - this.#knownSince > reliesMs) {
      this.#known = new KnownPrompts();
      this.#knownSince = now;
      this.#read = new Set();
    }
    const dialogue = dialogueOf({ generation, turn });
    if (this.#read === null || this.#read.has(dialogue)) return;
    this.#read.add(dialogue);
    const of = { job_id: job.id, generation, turn };
    const row = await findPromptBefore(database.read, of, Number.MAX_SAFE_INTEGER);
    if (row === undefined) return;
    const { reader, chain } = await readerOf(database.read, row);
    recallPrompt(this.#known, dialogue, { n: row.n, from: row.chain_from, chain }, reader);
  }

  /** Keeps what a call is sent, or why it is not kept; null where no request can be made of the call. */
  async keep(tx: Transaction, call: BeginningCall, body: Json | null, now: number): Promise<void> {
    const { job } = this.#claim;
    const { n, generation, turn } = call;
    const known = this.#known;
    const written = body && writePrompt(known, dialogueOf(call), n, body);
    const text = written?.text ?? '';
    const row = {
      job_id: job.id,
      n,
      organization_id: job.organization_id,
      generation,
      turn,
      bytes: written?.bytes ?? 0,
      chain_from: written?.from ?? n,
      created_at: now,
    };
    const state = written === null ? 'not_sent' : await this.#stateOf(tx, written.bytes, text);
    const isKept = state === 'kept';
    const kept_bytes = isKept ? Buffer.byteLength(text) : 0;
    await insertPrompt(tx, { ...row, state, kept_bytes, body: isKept ? text : null });
    if (isKept && written !== null) tx.afterCommit(() => rememberPrompt(known, written));
  }

  async #stateOf(tx: Transaction, bytes: number, text: string) {
    if (bytes > promptBytesMax) return 'too_large' as const;
    const { organization_id } = this.#claim.job;
    const { maxBytes } = this.#settings.of(organization_id);
    const hasRoom = await takeBytes(tx, organization_id, Buffer.byteLength(text), maxBytes);
    return hasRoom ? ('kept' as const) : ('cap_reached' as const);
  }
}

/** Turns go on from one another, and summaries of earlier messages do. */
const dialogueOf = ({ generation, turn }: Omit<BeginningCall, 'n'>) =>
  `${turn === 0 ? 'summary' : 'turn'} ${generation}`;
