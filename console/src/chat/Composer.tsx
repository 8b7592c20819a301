import { type KeyboardEvent, type ReactNode, type Ref, useId, useRef } from 'react';
import { Button } from '../ui/Button.tsx';
import { ArrowUp, Paperclip, Square } from '../ui/icons.tsx';
import { Problem } from '../ui/Loading.tsx';

/** Lines of a message that are shown at once; browsers that fit a field to its text show more. */
const rowsMax = 8;

/** The field of a chat. Enter sends; a line begins with Shift and Enter. */
export function Composer({
  ref,
  text,
  onText,
  files,
  isKeeping,
  onFiles,
  onSend,
  onSteer,
  onStopAndSend,
  onStop,
  state,
  isClosed,
  isAnew,
  hint,
  error,
}: {
  ref?: Ref<HTMLTextAreaElement>;
  text: string;
  onText: (text: string) => void;
  /** The files that the message is about. */
  files: ReactNode;
  /** Whether some of them are being sent, before which the message is not. */
  isKeeping: boolean;
  /** Called with files that were chosen, dropped or pasted. */
  onFiles: (files: readonly File[]) => void;
  onSend: () => void;
  /** Sends to the run that is under way. */
  onSteer: () => void;
  /** Stops the answer under way, and sends. */
  onStopAndSend: () => void;
  onStop: () => void;
  state: 'ready' | 'sending' | 'answering' | 'stopping' | 'closed';
  /** Whether no message may be written. */
  isClosed: boolean;
  /** Whether the message replaces an earlier one. */
  isAnew: boolean;
  hint: ReactNode;
  error: unknown;
}) {
  const id = useId();
  const chooser = useRef<HTMLInputElement>(null);
  const isEmpty = text.trim() === '';
  const isAnswering = state === 'answering' || state === 'stopping';
  const maySend = (state === 'ready' || isAnswering) && !isClosed && !isEmpty && !isKeeping;
  // What is chosen while a message is on its way would be of neither.
  const takesFiles = state !== 'closed' && state !== 'sending';
  function takeFiles(chosen: Iterable<File>) {
    if (takesFiles) onFiles([...chosen]);
  }
  function onKeyDown(event: KeyboardEvent) {
    // Enter also confirms a word in a Japanese or Chinese input method.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (maySend) onSend();
  }
  return (
    <form
      className="flex flex-col gap-2 border-t p-3"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        takeFiles(event.dataTransfer.files);
      }}
      onSubmit={(event) => {
        event.preventDefault();
        if (maySend) onSend();
      }}
    >
      {error != null && <Problem error={error} {...(maySend && { retry: onSend })} />}
      {files}
      <div className="flex items-end gap-2">
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          aria-label="Files"
          onChange={({ target }) => {
            takeFiles(target.files ?? []);
            // The same file may be chosen again.
            target.value = '';
          }}
        />
        <Button
          icon={<Paperclip />}
          aria-label="Attach files"
          disabled={!takesFiles}
          onClick={() => chooser.current?.click()}
        />
        <label htmlFor={id} className="sr-only">
          Message
        </label>
        <textarea
          ref={ref}
          id={id}
          aria-describedby={`${id}-hint`}
          rows={text.split('\n', rowsMax).length}
          maxLength={65_536}
          value={text}
          readOnly={state === 'sending'}
          disabled={state === 'closed'}
          placeholder="Write a message"
          onChange={({ target }) => onText(target.value)}
          onKeyDown={onKeyDown}
          onPaste={({ clipboardData }) => takeFiles(clipboardData.files)}
          className="field-sizing-content max-h-48 min-h-8.5 w-full min-w-0 grow resize-none rounded-md border border-line-strong bg-surface px-2.5 py-1.5 leading-relaxed text-ink hover:border-muted disabled:opacity-60"
        />
        {isAnswering && !maySend && (
          <Button icon={<Square />} busy={state === 'stopping'} onClick={onStop}>
            Stop
          </Button>
        )}
        {!isAnswering && (
          <Button
            type="submit"
            look="primary"
            icon={<ArrowUp />}
            busy={state === 'sending'}
            disabled={!maySend}
          >
            {isAnew ? 'Send anew' : 'Send'}
          </Button>
        )}
      </div>
      {isAnswering && maySend && (
        <div className="flex flex-wrap justify-end gap-2">
          <Button icon={<Square />} busy={state === 'stopping'} onClick={onStop}>
            Stop
          </Button>
          <Button onClick={onStopAndSend}>Stop and send</Button>
          <Button onClick={onSteer}>Send to this run</Button>
          <Button type="submit" look="primary" icon={<ArrowUp />}>
            Send
          </Button>
        </div>
      )}
      <p id={`${id}-hint`} className="text-xs text-muted">
        {hint}
      </p>
    </form>
  );
}
