// The viewer of an exported page: decodes SPZ 3, sorts by depth, draws one ellipse a Gaussian.
const scene = JSON.parse(document.getElementById("scene").textContent);
const canvas = document.getElementById("view");
const note = document.getElementById("note");
const wanted = new URLSearchParams(location.hash.slice(1));

// ---- The model: SPZ 3, a gzip stream of arrays (docs/formats.md). Axes are turned back half about x.

async function unpack() {
  const text = atob(document.getElementById("model").textContent.trim());
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Texture width of one or more texels a Gaussian.
const kRowTexels = 4096;

function decode(bytes) {
  const head = new DataView(bytes.buffer, bytes.byteOffset);
  const n = head.getUint32(8, true);
  const degree = bytes[12];
  const step = 2 ** -bytes[13];
  const rest = (degree + 1) ** 2 - 1;
  const alphas = 16 + 9 * n, colors = alphas + n, scales = colors + 3 * n, turns = scales + 3 * n, sh = turns + 4 * n;
  const height = Math.max(1, Math.ceil(n / (kRowTexels / 4)));
  // Four texels: mean and opacity; covariance xx xy xz yy; yz zz and red green; blue.
  const model = { n, degree, rest, height, data: new Float32Array(4 * kRowTexels * height), means: new Float32Array(3 * n) };
  for (let i = 0; i < n; ++i) {
    const at = 16 * i;
    for (let k = 0; k < 3; ++k) {
      const byte = 16 + 9 * i + 3 * k;
      const fixed = (bytes[byte] << 8 | bytes[byte + 1] << 16 | bytes[byte + 2] << 24) >> 8;
      model.means[3 * i + k] = model.data[at + k] = (k ? -1 : 1) * fixed * step;
    }
    model.data[at + 3] = bytes[alphas + i] / 255;
    // The largest component of (x, y, z, w) is left out.
    const word = head.getUint32(turns + 4 * i, true);
    const largest = word >>> 30;
    const q = [0, 0, 0, 0];
    let left = 1;
    for (let k = 0, part = 20; k < 4; ++k) {
      if (k === largest) continue;
      const bits = word >>> part & 1023;
      q[k] = (bits & 511) / 511 * Math.SQRT1_2 * (bits & 512 ? -1 : 1);
      left -= q[k] * q[k];
      part -= 10;
    }
    q[largest] = Math.sqrt(Math.max(0, left));
    const [x, y, z, w] = [q[0], -q[1], -q[2], q[3]];
    const r = [
      1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
      2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
      2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)];
    const s = [0, 1, 2].map((k) => Math.exp(2 * (bytes[scales + 3 * i + k] / 16 - 10)));
    const c = (a, b) => r[3 * a] * s[0] * r[3 * b] + r[3 * a + 1] * s[1] * r[3 * b + 1] + r[3 * a + 2] * s[2] * r[3 * b + 2];
    model.data.set([c(0, 0), c(0, 1), c(0, 2), c(1, 1), c(1, 2), c(2, 2)], at + 4);
    for (let k = 0; k < 3; ++k) {
      model.data[at + 10 + k] = 0.5 + 0.28209479177387814 * (bytes[colors + 3 * i + k] - 127.5) / 38.25;
    }
  }
  // The higher harmonics stay bytes: 16 texels a Gaussian, colour innermost.
  const flip = [-1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1, 1, -1, 1];
  model.shHeight = rest ? Math.max(1, Math.ceil(n / (kRowTexels / 16))) : 1;
  model.sh = new Uint8Array(4 * kRowTexels * model.shHeight).fill(128);
  for (let i = 0; i < n; ++i) {
    for (let k = 0; k < Math.min(rest, 15); ++k) {
      for (let channel = 0; channel < 3; ++channel) {
        const byte = bytes[sh + 3 * (i * rest + k) + channel];
        model.sh[4 * (16 * i + k) + channel] = flip[k] > 0 ? byte : Math.min(255, 256 - byte);
      }
    }
  }
  return model;
}

// ---- Drawing: nearest first, each Gaussian behind what is there already.

const kVertex = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D u_model, u_sh;
uniform mat3 u_rotation;     // world to camera
uniform vec3 u_translation, u_centre;
uniform vec4 u_lens;         // fx fy cx cy, pixels
uniform vec2 u_size;         // pixels
uniform float u_near;
uniform int u_degree;
in vec2 a_corner;
in uint a_row;
out vec2 v_offset;           // from the centre, pixels
flat out vec4 v_color;
flat out vec3 v_conic;

vec4 model(int texel) { int i = 4 * int(a_row) + texel; return texelFetch(u_model, ivec2(i % 4096, i / 4096), 0); }
vec3 rest(int k) {
  int i = 16 * int(a_row) + k;
  return (texelFetch(u_sh, ivec2(i % 4096, i / 4096), 0).rgb * 255.0 - 128.0) / 128.0;
}

// Ramamoorthi and Hanrahan, SIGGRAPH 2001; order and signs as in the PLY (docs/formats.md).
vec3 view_color(vec3 base, vec3 d) {
  vec3 color = base;
  float x = d.x, y = d.y, z = d.z;
  if (u_degree < 1) return color;
  color += 0.48860251190291987 * (-y * rest(0) + z * rest(1) - x * rest(2));
  if (u_degree < 2) return color;
  color += 1.0925484305920792 * (x * y * rest(3) - y * z * rest(4) - x * z * rest(6))
      + (0.94617469575755997 * z * z - 0.31539156525251999) * rest(5) + 0.54627421529603959 * (x * x - y * y) * rest(7);
  if (u_degree < 3) return color;
  return color + 0.59004358992664352 * (y * (y * y - 3.0 * x * x) * rest(8) + x * (3.0 * y * y - x * x) * rest(14))
      + 2.8906114426405538 * x * y * z * rest(9)
      + 0.45704579946446572 * (1.0 - 5.0 * z * z) * (y * rest(10) + x * rest(12))
      + 0.3731763325901154 * z * (5.0 * z * z - 3.0) * rest(11) + 1.4453057213202769 * z * (x * x - y * y) * rest(13);
}

void main() {
  gl_Position = vec4(0, 0, 2, 1);  // outside
  vec4 t0 = model(0), t1 = model(1), t2 = model(2), t3 = model(3);
  vec3 p = u_rotation * t0.xyz + u_translation;
  float opacity = t0.w;
  if (p.z < u_near || opacity < 1.0 / 255.0) return;
  // EWA: the covariance through the projection's Jacobian, taken no farther out than a guard band.
  vec2 tan_xy = p.xy / p.z;
  vec2 low = (-u_lens.zw - 0.15 * u_size) / u_lens.xy, high = (1.15 * u_size - u_lens.zw) / u_lens.xy;
  vec2 t = clamp(tan_xy, low, high);
  mat3 world = mat3(t1.x, t1.y, t1.z, t1.y, t1.w, t2.x, t1.z, t2.x, t2.y);
  mat3 v = u_rotation * world * transpose(u_rotation);
  vec3 jx = vec3(u_lens.x / p.z, 0.0, -u_lens.x * t.x / p.z);
  vec3 jy = vec3(0.0, u_lens.y / p.z, -u_lens.y * t.y / p.z);
  float a = dot(jx, v * jx) + 0.3, b = dot(jx, v * jy), c = dot(jy, v * jy) + 0.3;
  float determinant = a * c - b * b;
  if (determinant < 1e-6) return;
  vec2 extent = sqrt(2.0 * log(255.0 * opacity) * vec2(a, c));
  vec2 centre = tan_xy * u_lens.xy + u_lens.zw;
  v_offset = a_corner * (extent + 0.5);
  vec2 at = (centre + v_offset) / u_size;
  gl_Position = vec4(2.0 * at.x - 1.0, 1.0 - 2.0 * at.y, 0.0, 1.0);
  v_conic = vec3(c, -b, a) / determinant;
  v_color = vec4(clamp(view_color(vec3(t2.zw, t3.x), normalize(t0.xyz - u_centre)), 0.0, 4.0), opacity);
}`;

const kFragment = `#version 300 es
precision highp float;
in vec2 v_offset;
flat in vec4 v_color;
flat in vec3 v_conic;
out vec4 o_color;
void main() {
  vec2 d = v_offset;
  float power = 0.5 * (v_conic.x * d.x * d.x + v_conic.z * d.y * d.y) + v_conic.y * d.x * d.y;
  float alpha = min(0.999, v_color.a * exp(-power));
  if (alpha < 1.0 / 255.0) discard;
  o_color = vec4(v_color.rgb * alpha, alpha);
}`;

const kShowVertex = `#version 300 es
in vec2 a_corner;
void main() { gl_Position = vec4(a_corner, 0, 1); }`;
const kShowFragment = `#version 300 es
precision highp float;
uniform sampler2D u_image;
uniform vec3 u_background;
out vec4 o_color;
void main() {
  vec4 image = texelFetch(u_image, ivec2(gl_FragCoord.xy), 0);
  o_color = vec4(image.rgb + (1.0 - image.a) * u_background, 1);
}`;

const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, preserveDrawingBuffer: true });

function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "a_corner");
  gl.bindAttribLocation(made, 1, "a_row");
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return made;
}

function texture(unit, format, width, height, source, type, data) {
  const made = gl.createTexture();
  gl.activeTexture(gl.TEXTURE0 + unit);
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  gl.texImage2D(gl.TEXTURE_2D, 0, format, width, height, 0, source, type, data);
  return made;
}

function makeDrawing(model) {
  // Sums of many thin layers need more than 8 bits; float blending is an extension.
  const wide = gl.getExtension("EXT_color_buffer_float");
  const blends = wide && gl.getExtension("EXT_float_blend");
  const half = wide || gl.getExtension("EXT_color_buffer_half_float");
  const drawing = { splat: program(kVertex, kFragment), show: program(kShowVertex, kShowFragment), frame: gl.createFramebuffer() };
  drawing.format = blends ? [gl.RGBA32F, gl.FLOAT] : half ? [gl.RGBA16F, gl.HALF_FLOAT] : [gl.RGBA8, gl.UNSIGNED_BYTE];
  texture(0, gl.RGBA32F, kRowTexels, model.height, gl.RGBA, gl.FLOAT, model.data);
  texture(1, gl.RGBA8, kRowTexels, model.shHeight, gl.RGBA, gl.UNSIGNED_BYTE, model.sh);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, 4 * Math.max(1, model.n), gl.DYNAMIC_DRAW);
  gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_INT, 0, 0);
  gl.vertexAttribDivisor(1, 1);
  return drawing;
}

// Rows in front of the camera, nearest first: depths are positive floats, so their bits sort as integers.
function sorter(model) {
  const depths = new Float32Array(model.n);
  const keys = new Uint32Array(depths.buffer);
  let rows = new Uint32Array(model.n), other = new Uint32Array(model.n);
  const counts = new Uint32Array(65536);
  return (view) => {
    const [a, b, c] = view.rotation.slice(6), t = view.translation[2];
    let n = 0;
    for (let i = 0; i < model.n; ++i) {
      const z = a * model.means[3 * i] + b * model.means[3 * i + 1] + c * model.means[3 * i + 2] + t;
      depths[i] = z;
      if (z >= scene.near) rows[n++] = i;
    }
    for (const shift of [0, 16]) {
      counts.fill(0);
      for (let i = 0; i < n; ++i) ++counts[keys[rows[i]] >>> shift & 65535];
      for (let k = 0, sum = 0; k < 65536; ++k) { const count = counts[k]; counts[k] = sum; sum += count; }
      for (let i = 0; i < n; ++i) other[counts[keys[rows[i]] >>> shift & 65535]++] = rows[i];
      [rows, other] = [other, rows];
    }
    return rows.subarray(0, n);
  };
}

function draw(drawing, model, sorted, view) {
  const { width, height } = canvas;
  if (drawing.width !== width || drawing.height !== height) {
    gl.deleteTexture(drawing.image);
    drawing.image = texture(2, drawing.format[0], width, height, gl.RGBA, drawing.format[1], null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, drawing.frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, drawing.image, 0);
    [drawing.width, drawing.height] = [width, height];
  }
  gl.bindFramebuffer(gl.FRAMEBUFFER, drawing.frame);
  gl.viewport(0, 0, width, height);
  gl.clearColor(0, 0, 0, 0);
  gl.clear(gl.COLOR_BUFFER_BIT);
  gl.useProgram(drawing.splat);
  const at = (name) => gl.getUniformLocation(drawing.splat, name);
  gl.uniform1i(at("u_model"), 0);
  gl.uniform1i(at("u_sh"), 1);
  gl.uniformMatrix3fv(at("u_rotation"), true, view.rotation);
  gl.uniform3fv(at("u_translation"), view.translation);
  gl.uniform3fv(at("u_centre"), view.centre);
  gl.uniform4f(at("u_lens"), view.fx, view.fy, view.cx, view.cy);
  gl.uniform2f(at("u_size"), width, height);
  gl.uniform1f(at("u_near"), scene.near);
  gl.uniform1i(at("u_degree"), model.degree);
  gl.bufferSubData(gl.ARRAY_BUFFER, 0, sorted);
  gl.enableVertexAttribArray(1);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE_MINUS_DST_ALPHA, gl.ONE);
  gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, sorted.length);
  gl.disable(gl.BLEND);
  gl.disableVertexAttribArray(1);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.useProgram(drawing.show);
  gl.uniform1i(gl.getUniformLocation(drawing.show, "u_image"), 2);
  gl.uniform3fv(gl.getUniformLocation(drawing.show, "u_background"), scene.background);
  gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
}

// ---- Cameras: an eye and a target, turned around it; or exactly one of the scene's.

const minus = (a, b) => a.map((x, k) => x - b[k]);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const scaled = (a, s) => a.map((x) => x * s);
const plus = (a, b) => a.map((x, k) => x + b[k]);
const unit = (a) => scaled(a, 1 / Math.hypot(...a));

function exactView(camera) {
  const r = camera.rotation, t = camera.translation;
  const centre = [0, 1, 2].map((k) => -(r[k] * t[0] + r[3 + k] * t[1] + r[6 + k] * t[2]));
  return { ...camera, centre };
}

function orbitView(orbit) {
  const forward = unit(minus(orbit.target, orbit.eye));
  const right = unit(cross(forward, orbit.up));
  const down = cross(forward, right);
  const rotation = [...right, ...down, ...forward];
  const translation = [right, down, forward].map((axis) => -dot(axis, orbit.eye));
  const focal = orbit.focal * Math.min(canvas.width, canvas.height);
  return { rotation, translation, centre: orbit.eye, fx: focal, fy: focal, cx: canvas.width / 2, cy: canvas.height / 2 };
}

function orbitOf(camera) {
  const { centre, rotation } = exactView(camera);
  const forward = rotation.slice(6);
  const distance = Math.max(dot(minus(scene.target, centre), forward), 10 * scene.near);
  return {
    eye: centre, target: plus(centre, scaled(forward, distance)), up: scaled(rotation.slice(3, 6), -1),
    focal: camera.fx / Math.min(camera.width, camera.height),
  };
}

function turned(v, axis, angle) {  // Rodrigues
  const c = Math.cos(angle), s = Math.sin(angle);
  return plus(plus(scaled(v, c), scaled(cross(axis, v), s)), scaled(axis, dot(axis, v) * (1 - c)));
}

function control(orbit, changed) {
  const pointers = new Map();
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const move = [event.clientX - last[0], event.clientY - last[1]];
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    const view = orbitView(orbit);
    const right = view.rotation.slice(0, 3), back = minus(orbit.eye, orbit.target);
    if (pointers.size > 1 || event.shiftKey || event.buttons & 2) {
      const step = Math.hypot(...back) / view.fx * devicePixelRatio;
      const shift = plus(scaled(right, -move[0] * step), scaled(view.rotation.slice(3, 6), -move[1] * step));
      orbit.eye = plus(orbit.eye, shift);
      orbit.target = plus(orbit.target, shift);
    } else {
      const across = turned(back, orbit.up, -move[0] * 0.005);
      const side = unit(cross(orbit.up, across));
      const tilted = turned(across, side, -move[1] * 0.005);
      const steep = Math.abs(dot(unit(tilted), orbit.up)) > 0.995;
      orbit.eye = plus(orbit.target, steep ? across : tilted);
    }
    changed();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    orbit.eye = plus(orbit.target, scaled(minus(orbit.eye, orbit.target), Math.exp(event.deltaY * 0.001)));
    changed();
  }, { passive: false });
  let camera = 0;
  addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    camera = (camera + step + scene.cameras.length) % scene.cameras.length;
    Object.assign(orbit, orbitOf(scene.cameras[camera]));
    changed();
  });
  addEventListener("resize", changed);
}

async function main() {
  if (!gl) throw new Error("this browser has no WebGL 2");
  const model = decode(await unpack());
  const drawing = makeDrawing(model);
  const sort = sorter(model);
  const show = (view) => draw(drawing, model, sort(view), view);
  if (wanted.has("view")) {
    const camera = scene.cameras[Number(wanted.get("view"))];
    if (!camera) throw new Error("there is no camera " + wanted.get("view"));
    canvas.style.width = (canvas.width = camera.width) + "px";
    canvas.style.height = (canvas.height = camera.height) + "px";
    show(exactView(camera));
  } else {
    const orbit = orbitOf(scene.cameras[0]);
    let waiting = false;
    const changed = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        canvas.width = Math.round(innerWidth * devicePixelRatio);
        canvas.height = Math.round(innerHeight * devicePixelRatio);
        show(orbitView(orbit));
      });
    };
    control(orbit, changed);
    changed();
  }
  note.remove();
  document.title = scene.title;
}
main().catch((error) => { note.textContent = String(error); });
