/** How far a job is, in its own words. */
export function Progress({ fraction, note }: { fraction: number; note: string | null }) {
  const percent = Math.round(fraction * 100);
  return (
    <div className="flex items-center gap-3 text-[13px]">
      <div
        role="progressbar"
        aria-label="Progress"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        className="h-1.5 max-w-md min-w-24 grow overflow-hidden rounded-full bg-line"
      >
        <div
          className="h-full rounded-full bg-busy transition-[width] duration-500"
          style={{ width: `${percent}%` }}
        />
      </div>
      <span className="text-muted tabular-nums">
        {percent} %{note && ` · ${note}`}
      </span>
    </div>
  );
}
