/**
 * Reads server-sent events: takes text in chunks, returns the data of complete events. An event is
 * bounded by all its characters.
 *
 * `eventsource-parser` is not used here, because its bound counts only the data of an event: an endless
 * event of empty data lines took 265 MB of memory with it before a bound of 8 MiB ended it.
 */

import { answerBounds, ExcessError } from './answer.ts';

/** Characters of one event, which may have all pictures of an answer; a longer event is refused. */
const eventCharactersMax = answerBounds.pictureCharacters + 8 * 1024 * 1024;
/** Characters that a line counts for at least, because many short ones take as much memory. */
const lineCharactersMin = 32;

export class EventDataReader {
  /** The line that has not ended. */
  #open = '';
  /** Whether the last character was a CR, whose LF may follow. */
  #endsWithCr = false;
  /** The data lines of the event that has not ended. */
  #data: string[] = [];
  #characters = 0;

  /** The data of the events that end in this chunk. Throws an ExcessError on an event that is too long. */
  push(text: string): string[] {
    const rest = this.#endsWithCr && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.#endsWithCr = text.endsWith('\r');
    const lines = rest.includes('\r') ? rest.split(/\r\n|\n|\r/) : rest.split('\n');
    lines[0] = this.#open + (lines[0] ?? '');
    this.#open = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      this.#characters += Math.max(line.length, lineCharactersMin);
      const event = this.#takeLine(line);
      if (event !== null) events.push(event);
    }
    if (this.#characters + this.#open.length > eventCharactersMax) {
      throw new ExcessError(`${eventCharactersMax} characters of one event`);
    }
    return events;
  }

  /** The data of a last event without its closing blank line; null when there is none. */
  rest(): string | null {
    this.#takeLine(this.#open);
    this.#open = '';
    return this.#takeEvent();
  }

  #takeLine(line: string): string | null {
    if (line === '') return this.#takeEvent();
    if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    return null;
  }

  #takeEvent(): string | null {
    const whole = this.#data.join('\n');
    this.#data = [];
    this.#characters = 0;
    // An event without data is a keep-alive.
    return whole.trim() === '' ? null : whole;
  }
}
