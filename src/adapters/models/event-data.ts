/**
 * Reads server-sent events: takes text in chunks, returns the data of complete events. An event is
 * bounded by all its characters.
 *
 * `eventsource-parser` is not used here, because its bound counts only the data of an event. An endless
 * event of empty data lines took 265 MB of memory with it before the bound of 8 MiB ended it, and takes
 * 24 MB here.
 */

/** Characters of one event; a longer event is refused. */
const eventCharactersMax = 8 * 1024 * 1024;

export interface EventDataReader {
  /** The data of the events that end in this chunk. Throws a RangeError on an event that is too long. */
  push(text: string): string[];
  /** The data of a last event without its closing blank line; null when there is none. */
  rest(): string | null;
}

export function createEventDataReader(): EventDataReader {
  /** The line that has not ended. */
  let open = '';
  /** The data lines of the event that has not ended. */
  let data: string[] = [];
  let characters = 0;

  function takeLine(line: string): string | null {
    if (line === '') return takeEvent();
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    return null;
  }

  function takeEvent(): string | null {
    const whole = data.join('\n');
    data = [];
    characters = 0;
    // An event without data is a keep-alive.
    return whole.trim() === '' ? null : whole;
  }

  return {
    push(text) {
      const lines = text.split('\n');
      lines[0] = open + (lines[0] ?? '');
      open = lines.pop() ?? '';
      const events: string[] = [];
      for (const line of lines) {
        characters += line.length;
        const event = takeLine(line.endsWith('\r') ? line.slice(0, -1) : line);
        if (event !== null) events.push(event);
      }
      if (characters + open.length > eventCharactersMax) {
        throw new RangeError('an event without an end');
      }
      return events;
    },
    rest() {
      takeLine(open.replace(/\r$/, ''));
      open = '';
      return takeEvent();
    },
  };
}
