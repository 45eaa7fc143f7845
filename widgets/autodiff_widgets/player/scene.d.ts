/** What Python sends (see scene.py), and what of anywidget's model the player uses. */

type Change = [element: string, state: string | null, texts?: Record<string, string>];
type Question = { text: string; choices: [element: string, label: string][]; right: string };
type Frame = { caption: string; changes: Change[]; focus: string | null; source: string | null; question?: Question };
type Pane = { svg: string; label: string };
type Facts = Record<string, [label: string, value: string][]>;
type Scene = {
  title: string;
  panes: Pane[];
  frames: Frame[];
  facts: Facts;
  legend: [name: string, meaning: string][];
  sources?: Record<string, string[]>;
  notes?: Record<string, string>;
  opens?: string[];
  runs?: boolean;
};
type Model = {
  get(name: string): any;
  set(name: string, value: any): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
  widget_manager?: any;
};
/** A scene on stage: see stage.js. */
type Stage = {
  scene: Scene;
  boxes: HTMLElement[];
  elements: Elements;
  opens: Set<string>;
  reel: { readonly at: number; go(index: number): void };
  last: number;
  stops: Map<HTMLElement, { all: SVGElement[]; at: number }>;
  /** All elements that show what a key stands for. */
  family(key: string | null): SVGElement[];
  /** The first of them in each box. */
  shownIn(key: string | null): SVGElement[];
  /** Whether something is known of a key, so that it can be selected. */
  knows(key: string): boolean;
  factsOf(key: string | null): [label: string, value: string][];
  /** What the picture calls an element. */
  nameOf(key: string | null): string;
  /** The key of the element around a target, if something is known of it. */
  keyOf(target: EventTarget | null): string | null;
  /** Let every box show an element. */
  look(key: string | null, smooth: boolean, middle?: number): void;
};
type Elements = Map<string, SVGElement[]>;
type Timer = ReturnType<typeof setTimeout> | undefined;
