/**
 * Executes the lines of a Dockerfile without Docker, stage by stage, as root of a mount namespace. A stage sees this
 * machine's system through an overlay whose changes are lost at its end, and of the project nothing but what was
 * copied into it: the checkout is hidden. So a stage stands in for its base image, as far as Debian is one. Whatever
 * instruction or form it does not know is an error. What runs in the image has a read-only file system, but for /tmp and
 * its volumes.
 */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Copy, DockerfileParser, Env, type Flag, type Instruction } from 'dockerfile-ast';
import { copyInto, sendContext } from './build-context.ts';

/** A container of the built image. */
export interface Image {
  /** Starts the image's command, with these variables over those of the image. */
  start(environment: Environment): ChildProcess;
  /** SIGTERM to what `start` started. */
  stop(): void;
  /** The command of its health check. */
  readonly healthcheck: readonly string[];
  /** Runs a program in the same container; its exit code, and what it printed. */
  run(
    command: readonly string[],
    environment?: Environment,
  ): Promise<{ readonly code: number | null; readonly output: string }>;
  /** Ends all that runs in it, and removes it. */
  remove(): void;
}

type Environment = Readonly<Record<string, string>>;

interface Stage {
  readonly name: string;
  /** The files below its working directory. */
  readonly files: string;
  /** The root of its system, for processes in the namespaces of `holder`. */
  readonly root: string;
  /** The process that keeps its namespaces; undefined once it has ended. */
  holder: number | undefined;
  workdir: string;
  user: string;
  environment: Environment;
  entrypoint: readonly string[];
  healthcheck: readonly string[];
}

interface Build {
  readonly place: string;
  readonly signal: AbortSignal;
  readonly stages: Stage[];
}

const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const outputCharsMax = 8_000;
/** On a disk: the packages of three stages are a gigabyte. */
const temporary = '/var/tmp';
/** Namespaces need root. */
const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
const checkout = join(import.meta.dirname, '../..');

/**
 * Builds the image of a Dockerfile, whose path is relative to the folder of the context. `volumes` are the folders where its
 * containers have one each. Throws with the line that failed, and when the signal aborts.
 */
export async function buildImage(
  context: string,
  dockerfile: string,
  { signal, volumes = [] }: { signal: AbortSignal; volumes?: readonly string[] },
): Promise<Image> {
  const place = mkdtempSync(join(temporary, 'skillwright-image-'));
  const build: Build = { place, signal, stages: [] };
  try {
    sendContext(context, join(place, 'context'));
    const text = readFileSync(join(context, dockerfile), 'utf8');
    for (const instruction of DockerfileParser.parse(text).getInstructions()) {
      await executed(build, instruction, dockerfile);
    }
    const stage = build.stages.at(-1) as Stage;
    seal(stage, volumes);
    return imageOf(build, stage);
  } catch (error) {
    remove(build);
    throw error;
  }
}

function imageOf(build: Build, stage: Stage): Image {
  return {
    start: (environment) =>
      spawnIn(
        stage,
        ['sh', '-c', 'echo $$ > /tmp/main.pid && exec "$@"', 'sh', ...stage.entrypoint],
        {
          environment,
          stdio: 'pipe',
        },
      ),
    stop: () =>
      void spawnIn(stage, ['sh', '-c', 'kill "$(cat /tmp/main.pid)"'], {
        environment: {},
        stdio: 'ignore',
      }),
    healthcheck: stage.healthcheck,
    async run(command, environment = {}) {
      return await outcomeOf(spawnIn(stage, command, { environment, stdio: 'pipe' }));
    },
    remove: () => remove(build),
  };
}

function remove({ stages, place }: Build): void {
  for (const stage of stages) end(stage);
  runAsRoot('rm', '-rf', place);
}

/** From here on, only /tmp and the volumes can be written, as in a container with a read-only file system. */
function seal({ root, holder, workdir, user }: Stage, volumes: readonly string[]): void {
  const [uid, gid] = user.split(':');
  const mounts = [
    ...volumes.flatMap((volume) => [
      `mkdir -p "${root}${volume}"`,
      `mount -t tmpfs -o mode=700,uid=${uid},gid=${gid} tmpfs "${root}${volume}"`,
    ]),
    ...(workdir === '/' ? [] : [`mount -o remount,bind,ro "${root}${workdir}"`]),
    `mount -o remount,ro "${root}"`,
  ];
  const inStage = ['nsenter', '--target', String(holder), '--mount', '--'];
  runAsRoot(...inStage, 'sh', '-ec', mounts.join('\n'));
}

/** Its mounts end with the process. */
function end(stage: Stage): void {
  if (stage.holder === undefined) return;
  runAsRoot('kill', '-KILL', String(stage.holder));
  stage.holder = undefined;
}

function runAsRoot(...command: readonly string[]): void {
  const [program, ...args] = [...asRoot, ...command];
  execFileSync(program as string, args, { stdio: 'pipe' });
}

async function executed(build: Build, instruction: Instruction, file: string): Promise<void> {
  const line = instruction.getRange().start.line + 1;
  try {
    await execute(build, instruction);
  } catch (error) {
    const text = `${instruction.getKeyword()} ${instruction.getArgumentsContent() ?? ''}`;
    throw new Error(`${file}:${line}: ${text}\n${(error as Error).message}`, { cause: error });
  }
}

async function execute(build: Build, instruction: Instruction): Promise<void> {
  const text = instruction.getArgumentsContent() ?? '';
  const given = instruction.getArguments().map((argument) => argument.getValue());
  const keyword = instruction.getKeyword();
  if (keyword === 'FROM') return await addStage(build, given);
  const stage = build.stages.at(-1);
  if (stage === undefined) throw new Error('There is no stage yet');
  if (instruction instanceof Copy) copy(build, stage, given, instruction.getFlags());
  else if (instruction instanceof Env) setEnvironment(stage, instruction);
  else if (keyword === 'RUN') await run(build, stage, text);
  else if (keyword === 'WORKDIR') setWorkdir(stage, text);
  else if (keyword === 'USER') stage.user = text;
  else if (keyword === 'ENTRYPOINT') stage.entrypoint = listOf(text);
  else if (keyword === 'HEALTHCHECK') stage.healthcheck = listOf(text.replace(/^CMD /, ''));
  else if (keyword !== 'EXPOSE') throw new Error('The test does not know this instruction');
}

async function addStage(build: Build, [image = '', as, name]: readonly string[]): Promise<void> {
  const { stages, place } = build;
  if (!/^debian:\w+(-slim)?$/.test(image)) {
    throw new Error('This system stands in for images of Debian alone');
  }
  const before = stages.at(-1);
  if (before !== undefined) end(before);
  const files = join(place, `files-${stages.length}`);
  mkdirSync(files);
  chmodSync(files, 0o755);
  const base = join(place, `stage-${stages.length}`);
  stages.push({
    name: as === undefined ? String(stages.length) : (name ?? ''),
    files,
    root: join(base, 'root'),
    holder: await hold(base),
    workdir: '/',
    user: '0:0',
    environment: { PATH: systemPath, HOME: '/root' },
    entrypoint: [],
    healthcheck: [],
  });
}

function setWorkdir(stage: Stage, path: string): void {
  if (!/^\/\w+$/.test(path) || stage.workdir !== '/') {
    throw new Error('The test knows one working directory of a stage, in the root');
  }
  stage.workdir = path;
  const place = `${stage.root}${path}`;
  const mount = 'mkdir -p "$1" && mount --bind "$0" "$1"';
  const inStage = ['nsenter', '--target', String(stage.holder), '--mount', '--'];
  runAsRoot(...inStage, 'sh', '-c', mount, stage.files, place);
}

function setEnvironment(stage: Stage, instruction: Env): void {
  for (const property of instruction.getProperties()) {
    const value = (property.getValue() ?? '').replace(
      /\$\{?(\w+)\}?/g,
      (_all, name: string) => stage.environment[name] ?? '',
    );
    stage.environment = { ...stage.environment, [property.getName()]: value };
  }
}

/** A command as a list: as text, a shell would keep signals from it. */
function listOf(text: string): readonly string[] {
  const list: unknown = JSON.parse(text);
  if (Array.isArray(list)) return list.map(String);
  throw new Error('The command must be a list');
}

function copy({ stages, place }: Build, stage: Stage, given: readonly string[], flags: Flag[]) {
  const [from] = flags;
  if (from === undefined) return copyInto(join(place, 'context'), stage.files, given);
  const source = stages.find(({ name }) => name === from.getValue());
  if (flags.length > 1 || from.getName() !== 'from' || source === undefined) {
    throw new Error('The test knows --from with the name of a stage alone');
  }
  const within = given.slice(0, -1).map((path) => {
    const { workdir } = source;
    if (path === workdir || path.startsWith(`${workdir}/`)) return path.slice(workdir.length);
    throw new Error(`The test copies from ${workdir} of a stage alone`);
  });
  copyInto(source.files, stage.files, [...within, given.at(-1) ?? '']);
}

async function run({ signal }: Build, stage: Stage, command: string): Promise<void> {
  const options = { environment: {}, stdio: 'pipe' } as const;
  const { code, output } = await outcomeOf(spawnIn(stage, ['sh', '-c', command], options), signal);
  if (code !== 0) throw new Error(`ended with code ${code}:\n${output}`);
}

async function outcomeOf(child: ChildProcess, signal?: AbortSignal) {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-outputCharsMax);
    });
  }
  const [code] = await once(child, 'close', { ...(signal && { signal }) });
  return { code: code as number | null, output };
}

/** Starts a program in the stage's root, as its user, in its working directory. */
function spawnIn(
  { holder, root, user, workdir, environment }: Stage,
  command: readonly string[],
  given: { readonly environment: Environment; readonly stdio: SpawnOptions['stdio'] },
) {
  const variables = Object.entries({ ...environment, ...given.environment });
  const [program, ...args] = [
    ...asRoot,
    ...['nsenter', '--target', String(holder), '--mount', '--pid', '--'],
    ...['chroot', `--userspec=${user}`, '--groups=', root],
    ...['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`)],
    ...['sh', '-c', 'cd "$0" && exec "$@"', workdir, ...command],
  ];
  return spawn(program as string, args, { stdio: given.stdio ?? 'pipe' });
}

/** Starts the process whose namespaces the stage's commands share, and gives it a root; its pid outside of them. */
async function hold(root: string): Promise<number> {
  mkdirSync(root);
  const [program, ...args] = [
    ...asRoot,
    ...['unshare', '--mount', '--pid', '--fork', '--kill-child'],
    ...['sh', '-c', setUp, 'sh', root, checkout, ...programsOnPath()],
  ];
  const child = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  for await (const line of createInterface({ input: child.stdout })) return Number(line);
  throw new Error(`There is no root for a stage: ${output}`);
}

/** The kernel lets no overlay keep its changes in what it lies over, so they are in memory. */
const setUp = `
  set -e
  read -r pid rest < /proc/self/stat
  base=$1 root=$1/root checkout=$2
  shift 2
  mount -t tmpfs -o mode=755 tmpfs "$base"
  mkdir "$base/changes" "$base/work" "$root"
  mount -t overlay -o "lowerdir=/,upperdir=$base/changes,workdir=$base/work" overlay "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf.copy"
  mv "$root/etc/resolv.conf.copy" "$root/etc/resolv.conf"
  mkdir -p "$root$checkout"
  mount -t tmpfs tmpfs "$root$checkout"
  for program in "$@"; do mount --bind /dev/null "$root$program"; done
  echo "$pid"
  exec sleep infinity
`;

/** The image of Debian has none of these. */
function programsOnPath(): string[] {
  const files = systemPath
    .split(':')
    .flatMap((folder) => ['node', 'npm', 'npx'].map((name) => join(folder, name)));
  return [...new Set(files.filter((file) => existsSync(file)).map((file) => realpathSync(file)))];
}
