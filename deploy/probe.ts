/**
 * Asks the process in this container how it is, for Docker's HEALTHCHECK and Kubernetes' probes.
 * Exit code 0 is yes.
 *
 *     node probe.ts            ready: /health says ok or degraded
 *     node probe.ts --answers  alive: /health answers with any status
 *
 * Restart processes by the second only: while PostgreSQL or Redis is away /health is 503, and a restart
 * would only interrupt the runs.
 */

/** Well above the 100 ms in which /health answers, and below the timeouts of Docker and Kubernetes. */
const deadlineMs = 4_000;

const url = `http://127.0.0.1:${process.env['PORT'] ?? '3000'}/health`;
try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(deadlineMs) });
  console.log(await answer.text());
  process.exit(answer.ok || process.argv.includes('--answers') ? 0 : 1);
} catch (error) {
  const { message, cause } = error as Error;
  console.log(`${url}: ${cause instanceof Error ? cause.message : message}`);
  process.exit(1);
}
