// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/icons.h"

#include "ui/style/theme.h"

#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPixmapCache>
#include <QSvgRenderer>

static void initIconResources()
{
    Q_INIT_RESOURCE(icons);
}

namespace klineage::ui {

namespace {

/// Renders a one-colour SVG in the theme's text colour; disabled ones are faint, checked ones have the accent.
class ThemedIconEngine : public QIconEngine
{
public:
    ThemedIconEngine(QString name, QByteArray svg)
        : m_name(std::move(name))
        , m_svg(std::move(svg))
    {}

    void paint(QPainter *painter, const QRect &rect, QIcon::Mode mode, QIcon::State state) override
    {
        QByteArray svg = m_svg;
        svg.replace("currentColor", color(mode, state).name().toLatin1());
        QSvgRenderer renderer(svg);
        renderer.render(painter, rect);
    }

    QPixmap pixmap(const QSize &size, QIcon::Mode mode, QIcon::State state) override
    {
        const QString key = QStringLiteral("klineage-icon/%1/%2/%3x%4")
                                .arg(m_name, color(mode, state).name())
                                .arg(size.width())
                                .arg(size.height());
        QPixmap pixmap;
        if (!QPixmapCache::find(key, &pixmap)) {
            pixmap = QPixmap(size);
            pixmap.fill(Qt::transparent);
            QPainter painter(&pixmap);
            paint(&painter, QRect(QPoint(0, 0), size), mode, state);
            painter.end();
            QPixmapCache::insert(key, pixmap);
        }
        return pixmap;
    }

    QIconEngine *clone() const override { return new ThemedIconEngine(m_name, m_svg); }

private:
    [[nodiscard]] static QColor color(QIcon::Mode mode, QIcon::State state)
    {
        const Theme &theme = Theme::current();
        if (mode == QIcon::Disabled)
            return theme.faint;
        return state == QIcon::On ? theme.accent : theme.text;
    }

    QString m_name;
    QByteArray m_svg;
};

} // namespace

QIcon icon(const QString &name)
{
    initIconResources();
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QIcon(new ThemedIconEngine(name, file.readAll()));
}

QIcon applicationIcon()
{
    return icon(QStringLiteral(
        "klineage")); // not by its file's name: Debian 13 has the plugin for that in a package of its own
}

} // namespace klineage::ui
