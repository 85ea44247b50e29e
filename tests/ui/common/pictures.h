// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures compared as a person compares them: where there is ink, and how much. Fonts are drawn a little differently by each program that opens
// a file, so pixels are not the same; what is cut, missing or elsewhere shows all the same.
#pragma once

#include <QImage>
#include <QRect>

#include <cmath>
#include <vector>

namespace klineage::ui {

/// The part of a picture that is not its background, which is the colour of its corner.
[[nodiscard]] inline QRect inkedRect(const QImage &picture)
{
    const QImage image = picture.convertToFormat(QImage::Format_RGB32);
    const QRgb paper = image.pixel(0, 0);
    QRect inked;
    for (int y = 0; y < image.height(); ++y) {
        const auto *line = reinterpret_cast<const QRgb *>(image.constScanLine(y));
        int left = 0;
        int right = image.width() - 1;
        const auto isPaper = [paper](QRgb pixel) { return std::abs(qGray(pixel) - qGray(paper)) < 24; };
        while (left <= right && isPaper(line[left]))
            ++left;
        while (right > left && isPaper(line[right]))
            --right;
        if (left <= right)
            inked |= QRect(left, y, right - left + 1, 1);
    }
    return inked;
}

/// How dark each field of a grid over the inked part is, row by row.
[[nodiscard]] inline std::vector<double> inkGrid(const QImage &picture, int columns = 48, int rows = 24)
{
    const QImage image = picture.copy(inkedRect(picture)).convertToFormat(QImage::Format_RGB32);
    std::vector<double> grid(static_cast<std::size_t>(columns * rows), 0);
    if (image.isNull())
        return grid;
    const int paper = qGray(picture.convertToFormat(QImage::Format_RGB32).pixel(0, 0));
    std::vector<int> counts(grid.size(), 0);
    for (int y = 0; y < image.height(); ++y) {
        const auto *line = reinterpret_cast<const QRgb *>(image.constScanLine(y));
        for (int x = 0; x < image.width(); ++x) {
            const auto field =
                static_cast<std::size_t>(y * rows / image.height() * columns + x * columns / image.width());
            grid[field] += std::abs(qGray(line[x]) - paper);
            ++counts[field];
        }
    }
    for (std::size_t i = 0; i < grid.size(); ++i)
        grid[i] = counts[i] > 0 ? grid[i] / counts[i] : 0;
    return grid;
}

/// 1: the same places are inked alike; about 0: they have nothing to do with each other.
[[nodiscard]] inline double likeness(const QImage &a, const QImage &b)
{
    const std::vector<double> x = inkGrid(a);
    const std::vector<double> y = inkGrid(b);
    double meanX = 0;
    double meanY = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        meanX += x[i] / static_cast<double>(x.size());
        meanY += y[i] / static_cast<double>(y.size());
    }
    double both = 0;
    double ownX = 0;
    double ownY = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        both += (x[i] - meanX) * (y[i] - meanY);
        ownX += (x[i] - meanX) * (x[i] - meanX);
        ownY += (y[i] - meanY) * (y[i] - meanY);
    }
    return ownX > 0 && ownY > 0 ? both / std::sqrt(ownX * ownY) : 0;
}

} // namespace klineage::ui
