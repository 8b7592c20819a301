import { useState } from 'react';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { countText } from '../ui/Time.tsx';

/** Longer texts are folded. */
const charactersMax = 1_600;
const linesMax = 18;

/** Plain text; only the beginning of a long one until it is unfolded. */
export function Folded({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const isLong = text.length > charactersMax || text.split('\n', linesMax + 1).length > linesMax;
  return (
    <div>
      <div
        className={classes(
          'leading-relaxed break-words whitespace-pre-wrap',
          isLong &&
            !isOpen &&
            'max-h-72 overflow-hidden mask-linear-180 mask-linear-from-70% mask-linear-to-100%',
        )}
      >
        {isLong && !isOpen ? text.slice(0, charactersMax * 2) : text}
      </div>
      {isLong && (
        <Button
          look="quiet"
          size="small"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="mt-1 -ml-2"
        >
          {isOpen ? 'Show less' : `Show all ${countText(text.length)} characters`}
        </Button>
      )}
    </div>
  );
}
