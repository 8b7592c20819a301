/**
 * Addresses and arguments that most likely hold no credentials: usual paths, names and flags. Everything else may hold
 * some, and then names its organizations (docs/decisions/organizations.md). A host is no secret: DNS and TLS send it
 * unencrypted.
 */
import { areWords, secretsInArgs } from './recognize-secrets.ts';

const segmentsMax = 6;
const version = /^v\d{1,2}(?:\.\d{1,2})?$/;
/** `mcp2`, `order-management-api` and `openapi.json`; the words are judged without their digits. */
const wordsWithDigits = /^[a-z]{1,15}\d{0,2}(?:[._-][a-z]{1,15}\d{0,2}){0,4}$/;

/** A path as an attacker would guess it, which holders of API keys may see. */
const guessablePath =
  /^(?:\/(?:api|mcp|sse|rest|docs|v\d|(?:openapi|swagger|api-docs)(?:\.json|\.ya?ml)?)){0,3}\/?$/;

/** A flag: `-y` and `--read-only`. */
const flag = /^(?:-[a-zA-Z]|--[a-z]{1,15}(?:-[a-z]{1,15}){0,3})$/;
/** Flags whose values are often passwords, keys, tokens and headers. */
const secretFlag = /^-[pPktuH]$/;
/** The name of a package of a scope, which is public. */
const scoped =
  /^@[a-z0-9][a-z0-9._-]{0,60}\/[a-z0-9][a-z0-9._-]{0,60}(?:@[a-z0-9][a-z0-9.-]{0,20})?$/;
const versionOfPackage = /@(?:latest|\d{1,4}(?:\.\d{1,4}){0,2})$/;
const number = /^\d{1,5}$/;
/** The file of a program. */
const program = /^[^=:,\s]{1,1000}\.(?:[cm]?[jt]s|py|rb|jar|sh)$/;
/** A path of short names. */
const file = /^(?:\.{0,2}\/)?(?:[\w.-]{1,12}\/){1,20}[\w.-]{0,12}$/;

/** Why an address may hold credentials, as the end of a sentence about `field`; null where it most likely holds none. */
export function whyNotPlain(field: string, address: string): string | null {
  const url = URL.parse(address);
  if (url === null || url.href !== url.origin + url.pathname) {
    return `${field} has a query or other parts that may hold a secret`;
  }
  const segments = url.pathname.slice(1).replace(/\/$/, '').split('/');
  const isPlain = segments.length <= segmentsMax && segments.every(isPlainSegment);
  return isPlain
    ? null
    : `the path of ${field} may hold a secret, which one of a few words, such as /mcp and /api/v1, does not`;
}

/** Why the arguments of a command may hold credentials, as the end of a sentence; null where they most likely hold none. */
export function whyNotPlainArgs(args: readonly string[]): string | null {
  const isRecognized = secretsInArgs(args).some((text) => text !== '');
  const at = args.findIndex((arg, i) => secretFlag.test(args[i - 1] ?? '') || !isPlainArg(arg));
  if (!isRecognized && at === -1) return null;
  const which = at === -1 ? 'args' : `args.${at}`;
  return `${which} may hold a secret, which flags, words, numbers, packages and files of programs do not`;
}

/** An address as holders of API keys may see it: without the parts that may hold a secret. */
export function shownAddress(address: string): string {
  const url = URL.parse(address);
  if (url === null) return '';
  return guessablePath.test(url.pathname) ? url.origin + url.pathname : url.origin;
}

function isPlainSegment(segment: string): boolean {
  return segment === '' || version.test(segment) || isWord(segment);
}

function isWord(text: string): boolean {
  return wordsWithDigits.test(text) && areWords(text.replace(/\d/g, ''));
}

function isPlainArg(arg: string): boolean {
  if (arg.includes('://')) return whyNotPlain('it', arg) === null;
  return (
    flag.test(arg) ||
    number.test(arg) ||
    scoped.test(arg) ||
    isWord(arg.replace(versionOfPackage, '')) ||
    program.test(arg) ||
    file.test(arg)
  );
}
