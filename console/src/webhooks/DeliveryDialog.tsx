import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { deliveryQuery, redeliver, type WebhookDelivery } from '../api/webhooks.ts';
import { Button } from '../ui/Button.tsx';
import { Code, Json } from '../ui/Code.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { RotateCw } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Facts } from '../ui/Page.tsx';
import { Status, type Tone } from '../ui/Status.tsx';
import { Duration, Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

type Attempt = WebhookDelivery['attempts'][number];

/** A delivery with every attempt at it. */
export function DeliveryDialog({
  webhookId,
  deliveryId,
  isEnabled,
  onClose,
  onOpen,
}: {
  webhookId: string;
  deliveryId: string;
  /** Whether the webhook is enabled; a disabled one gets no deliveries. */
  isEnabled: boolean;
  onClose: () => void;
  onOpen: (deliveryId: string) => void;
}) {
  const query = useQuery(deliveryQuery(webhookId, deliveryId));
  const again = useAct({
    act: () => redeliver(webhookId, deliveryId),
    done: 'It is sent again, as a new delivery',
    failed: 'It was not sent again',
    changes: [['webhooks']],
  });
  return (
    <Dialog open onClose={onClose} wide title={query.data?.event ?? 'Delivery'}>
      <Loaded query={query}>
        {(delivery) => (
          <div className="flex flex-col gap-5">
            <div className="flex flex-wrap items-start justify-between gap-4">
              <Facts
                facts={[
                  [
                    'Status',
                    <span key="status" className="flex flex-wrap items-center gap-2">
                      <Status value={delivery.status} />
                      {delivery.next_attempt_at !== null && (
                        <span className="text-muted">
                          next attempt <Time value={delivery.next_attempt_at} />
                        </span>
                      )}
                    </span>,
                  ],
                  ['Made', <Time key="made" value={delivery.created_at} />],
                  delivery.finished_at !== null && [
                    'Ended',
                    <Time key="ended" value={delivery.finished_at} />,
                  ],
                  ['Delivery', <Id key="id">{delivery.id}</Id>],
                  ['Event', <Id key="event">{delivery.event_id}</Id>],
                  delivery.test && [
                    'Sample',
                    'A test that a user requested; no such event happened.',
                  ],
                  delivery.redelivery_of !== null && [
                    'Again',
                    <Link
                      key="again"
                      to="/webhooks/$webhookId"
                      params={{ webhookId }}
                      search={(before) => ({ ...before, delivery: delivery.redelivery_of ?? '' })}
                      resetScroll={false}
                      className={textLink}
                    >
                      The original delivery
                    </Link>,
                  ],
                ]}
              />
              <Button
                icon={<RotateCw />}
                busy={again.isPending}
                disabled={!isEnabled}
                title={isEnabled ? undefined : 'Enable the webhook first'}
                onClick={() => again.mutate(undefined, { onSuccess: ({ id }) => onOpen(id) })}
              >
                Redeliver
              </Button>
            </div>
            <section aria-label="Attempts">
              <h3 className="mb-2 text-[13px] font-semibold">
                Attempts <span className="font-normal text-muted">{delivery.attempts.length}</span>
              </h3>
              {delivery.attempts.length === 0 ? (
                <p className="text-[13px] text-muted">No attempt has ended yet.</p>
              ) : (
                <ol className="flex flex-col divide-y rounded-md border">
                  {delivery.attempts.toReversed().map((attempt) => (
                    <OneAttempt key={attempt.attempt} attempt={attempt} />
                  ))}
                </ol>
              )}
            </section>
            <section aria-label="Body">
              <h3 className="mb-2 text-[13px] font-semibold">What is sent</h3>
              <Json value={JSON.parse(delivery.body)} label="Body" />
            </section>
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}

function Id({ children }: { children: string }) {
  return <code className="font-mono text-xs break-all">{children}</code>;
}

const toneOf = ({ error }: Attempt): Tone => (error === null ? 'good' : 'bad');

function OneAttempt({ attempt }: { attempt: Attempt }) {
  const { attempt: n, started_at, duration_ms, status, error, response } = attempt;
  return (
    <li className="flex flex-col gap-2 px-3.5 py-3 text-[13px]">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="font-medium">Attempt {n}</span>
        <Status value="attempt" tone={toneOf(attempt)}>
          {status === null ? 'no answer' : `HTTP ${status}`}
        </Status>
        <span className="text-muted">
          took <Duration ms={duration_ms} />
        </span>
        <span className="ml-auto text-muted">
          <Time value={started_at} />
        </span>
      </div>
      {error !== null && <p className="break-words text-bad-text">{error}</p>}
      {response !== null && response !== '' && (
        <Code text={response} label={`Answer to attempt ${n}`} />
      )}
    </li>
  );
}
