export {
  batch,
  computed,
  effect,
  type ReadonlySignal,
  type Signal,
  signal,
  untracked,
  useComputed,
  useSignal,
  useSignalEffect,
} from "@preact/signals";
export {
  type ComponentChild,
  type ComponentChildren,
  type ComponentType,
  type Context,
  createContext,
  Fragment,
  type FunctionComponent,
  h,
  type JSX,
  type Ref,
  type RefObject,
  render,
  type TargetedEvent,
  type VNode,
} from "preact";
export {
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "preact/hooks";

import type { VNode } from "preact";

/** The element of a template. A template has one root element; several go into an array or a Fragment. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
