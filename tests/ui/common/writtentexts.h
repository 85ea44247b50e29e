// SPDX-License-Identifier: GPL-3.0-or-later
// Which texts a widget or a picture paints, and where: so that a test can say that none stands on another.
#pragma once

#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>
#include <QWidget>

#include <algorithm>
#include <vector>

namespace klineage::ui {

struct WrittenText {
    QString text;
    QRectF place;
};

/// A device that keeps texts and forgets everything else.
class TextRecorder : public QPaintDevice
{
public:
    explicit TextRecorder(const QSize &size)
        : m_size(size)
        , m_engine(this)
    {}
    [[nodiscard]] QPaintEngine *paintEngine() const override { return &m_engine; }
    /// In the order in which they were painted.
    [[nodiscard]] const std::vector<WrittenText> &texts() const { return m_texts; }

protected:
    [[nodiscard]] int metric(PaintDeviceMetric metric) const override
    {
        switch (metric) {
        case PdmWidth:
            return m_size.width();
        case PdmHeight:
            return m_size.height();
        case PdmDpiX:
        case PdmDpiY:
        case PdmPhysicalDpiX:
        case PdmPhysicalDpiY:
            return 96;
        case PdmDevicePixelRatio:
            return 1;
        case PdmDevicePixelRatioScaled:
            return static_cast<int>(devicePixelRatioFScale());
        case PdmDepth:
            return 32;
        default:
            return 1000;
        }
    }

private:
    class Engine : public QPaintEngine
    {
    public:
        explicit Engine(TextRecorder *recorder)
            : QPaintEngine(AllFeatures)
            , m_recorder(recorder)
        {}
        bool begin(QPaintDevice *) override { return true; }
        bool end() override { return true; }
        void updateState(const QPaintEngineState &changed) override
        {
            if (changed.state() & DirtyTransform)
                m_transform = changed.transform();
        }
        void drawPixmap(const QRectF &, const QPixmap &, const QRectF &) override {}
        void drawTiledPixmap(const QRectF &, const QPixmap &, const QPointF &) override {}
        void drawImage(const QRectF &, const QImage &, const QRectF &, Qt::ImageConversionFlags) override {}
        void drawPath(const QPainterPath &) override {}
        void drawPolygon(const QPointF *, int, PolygonDrawMode) override {}
        void drawPolygon(const QPoint *, int, PolygonDrawMode) override {}
        void drawTextItem(const QPointF &at, const QTextItem &item) override
        {
            const QRectF place(at.x(), at.y() - item.ascent(), item.width(), item.ascent() + item.descent());
            m_recorder->m_texts.push_back({item.text(), m_transform.mapRect(place)});
        }
        [[nodiscard]] Type type() const override { return User; }

    private:
        TextRecorder *m_recorder;
        QTransform m_transform;
    };

    QSize m_size;
    mutable Engine m_engine;
    std::vector<WrittenText> m_texts;
};

/// Two texts of which one stands on the other, or one that the edge cuts; empty: there is none. Lines may be as near as in a paragraph.
[[nodiscard]] inline QString touchingTexts(const std::vector<WrittenText> &texts, const QRectF &room)
{
    const auto core = [](const WrittenText &text) {
        const double near = text.place.height() * 0.14;
        return text.place.adjusted(0.5, near, -0.5, -near);
    };
    const auto named = [](const WrittenText &text) {
        return QStringLiteral("\"%1\" at %2,%3 %4x%5")
            .arg(text.text)
            .arg(text.place.x())
            .arg(text.place.y())
            .arg(text.place.width())
            .arg(text.place.height());
    };
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].text.trimmed().isEmpty())
            continue;
        if (!room.contains(core(texts[i])))
            return named(texts[i]) + QStringLiteral(" is cut");
        for (std::size_t j = 0; j < i; ++j) {
            if (!texts[j].text.trimmed().isEmpty() && core(texts[i]).intersects(core(texts[j])))
                return named(texts[j]) + QStringLiteral(" and ") + named(texts[i]);
        }
    }
    return {};
}

} // namespace klineage::ui
