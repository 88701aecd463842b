"""test_garden: real points without photographs, drawn by the rasteriser and compared with a plain z-buffer."""
import ast
import json
import math
import pathlib
import struct
import subprocess
import zipfile
import zlib

SH0 = 0.28209479177387814
SCALE = 0.002  # standard deviation of a drawn point, as a share of its median distance to the cameras
RADIUS = 3     # px: a point is in front if nothing is nearer within this distance


def read_npz(path):
    """Arrays of a .npz as {name: (shape, flat tuple)}; float32, uint8 and int64 are enough here."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            major = data[6]
            size = struct.unpack("<H" if major == 1 else "<I", data[8:10 if major == 1 else 12])[0]
            begin = 10 if major == 1 else 12
            header = ast.literal_eval(data[begin:begin + size].decode("latin1"))
            code = {"<f4": "f", "|u1": "B", "<i8": "q"}[header["descr"]]
            count = math.prod(header["shape"])
            values = struct.unpack(f"<{count}{code}", data[begin + size:])
            arrays[name.removesuffix(".npy")] = (header["shape"], values)
    return arrays


def write_ply(path, points, colors, log_scale):
    names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
             "rot_0", "rot_1", "rot_2", "rot_3"]
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(points)}"]
    header += [f"property float {name}" for name in names] + ["end_header", ""]
    rows = [struct.pack("<14f", *p, *((c / 255 - 0.5) / SH0 for c in rgb), 6.0, *[log_scale] * 3, 1, 0, 0, 0)
            for p, rgb in zip(points, colors)]
    path.write_bytes("\n".join(header).encode() + b"".join(rows))


def read_png(path):
    """Rows of an 8-bit RGB PNG."""
    data, at, idat, width = path.read_bytes(), 8, b"", 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width = struct.unpack(">I", data[at + 8:at + 12])[0]
        elif kind == b"IDAT":
            idat += data[at + 8:at + 8 + size]
        at += size + 12
    raw, stride, rows = zlib.decompress(idat), 3 * width, []
    previous = bytearray(stride)
    for y in range(len(raw) // (stride + 1)):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up = row[i - 3] if i >= 3 else 0, previous[i]
            corner = previous[i - 3] if i >= 3 else 0
            if kind == 1:
                row[i] = (row[i] + left) & 255
            elif kind == 2:
                row[i] = (row[i] + up) & 255
            elif kind == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif kind == 4:
                p = left + up - corner
                near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
                row[i] = (row[i] + near) & 255
        rows.append(row)
        previous = row
    return rows


def project(points, view, k):
    """(u, v, z) of each point in front of a camera, else None."""
    out = []
    for x, y, z in points:
        cx, cy, cz = (view[4 * i] * x + view[4 * i + 1] * y + view[4 * i + 2] * z + view[4 * i + 3] for i in range(3))
        out.append((k[0] * cx / cz + k[2], k[4] * cy / cz + k[5], cz) if cz > 0.05 else None)
    return out


def compare(data, millrace, out):
    """Median absolute colour error (0-255) of front points, and how many there were."""
    out.mkdir(parents=True, exist_ok=True)
    arrays = read_npz(pathlib.Path(data) / "test_garden" / "test_garden.npz")
    flat, rgb = arrays["means3d"][1], arrays["colors"][1]
    points = list(zip(flat[0::3], flat[1::3], flat[2::3]))
    colors = list(zip(rgb[0::3], rgb[1::3], rgb[2::3]))
    width, height = arrays["width"][1][0], arrays["height"][1][0]
    cameras, seen = [], []
    for i in range(arrays["viewmats"][0][0]):
        view, k = arrays["viewmats"][1][16 * i:16 * i + 16], arrays["Ks"][1][9 * i:9 * i + 9]
        rotation = [[view[4 * c + r] for c in range(3)] for r in range(3)]  # camera to world
        position = [-sum(rotation[r][c] * view[4 * c + 3] for c in range(3)) for r in range(3)]
        cameras.append({"id": i, "img_name": f"view{i}.png", "width": width, "height": height, "position": position,
                        "rotation": rotation, "fx": k[0], "fy": k[4], "cx": k[2], "cy": k[5]})
        seen.append(project(points, view, k))
    depths = sorted(p[2] for p in seen[0] if p)
    write_ply(out / "points.ply", points, colors, math.log(SCALE * depths[len(depths) // 2]))
    (out / "cameras.json").write_text(json.dumps(cameras), encoding="utf-8")
    subprocess.run([millrace, "render", str(out / "points.ply"), "--cameras", str(out / "cameras.json"), "-o",
                    str(out / "renders"), "--overwrite", "-q"], check=True, stdin=subprocess.DEVNULL)
    errors = []
    for i, projected in enumerate(seen):
        rows = read_png(out / "renders" / f"view{i}.png")
        nearest = {}
        for p in projected:
            if p and 0 <= p[0] < width and 0 <= p[1] < height:
                cell = (int(p[0]) // RADIUS, int(p[1]) // RADIUS)
                nearest[cell] = min(nearest.get(cell, math.inf), p[2])
        for p, color in zip(projected, colors):
            if not p or not (0 <= p[0] < width and 0 <= p[1] < height):
                continue
            column, line = int(p[0]) // RADIUS, int(p[1]) // RADIUS
            around = (nearest.get((column + a, line + b), math.inf) for a in (-1, 0, 1) for b in (-1, 0, 1))
            if p[2] <= min(around):
                pixel = rows[int(p[1])][3 * int(p[0]):3 * int(p[0]) + 3]
                errors.append(sum(abs(a - b) for a, b in zip(pixel, color)) / 3)
    errors.sort()
    return errors[len(errors) // 2], len(errors)
