"""A page for a browser without a network, as one file: data is put into `page.html`, which draws it.

The page itself is built from the sources in `page/` of the repository; the licences of what is in it are in `LICENSES.txt`.

    page          `filled`: the data put into the page; `written`: the file; `Page`: the same in a notebook
    string_table  texts, lines and layouts that are written once and referred to by number

Imports `inputs`.
"""
