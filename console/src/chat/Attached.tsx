import { Files } from '../conversations/Files.tsx';
import { Button } from '../ui/Button.tsx';
import { X } from '../ui/icons.tsx';
import type { useAttached } from './useAttached.ts';

/** The files of the next message, each of which can be left out again. */
export function Attached({ attached }: { attached: ReturnType<typeof useAttached> }) {
  return (
    <>
      <Files
        ids={attached.ids}
        action={(id) => (
          <Button
            size="small"
            look="quiet"
            icon={<X />}
            aria-label="Leave the file out"
            onClick={() => attached.remove(id)}
          />
        )}
      />
      {attached.isKeeping && (
        <p role="status" className="text-xs text-muted">
          Files are being sent …
        </p>
      )}
    </>
  );
}
